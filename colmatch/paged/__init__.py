"""Matchers that live in a file of pages: ``file`` keeps pages, and ``store`` knows their contents.

**After a kill**, every finished update is there. The log beside the file gets the pages that an
update has changed, as one record (``store/log.py``). An update counts only if its record is whole.
Only a *checkpoint* changes pages in the file, by copying them from the log. The log is discarded
only when a header of the next generation is on the disk:

- killed while the log is written: the last record is not whole, and its update was never finished;
- killed while pages are copied: the old header counts, so the log does, too, and has all of them;
- killed after the new header is written: the log is of an older generation and does not count. All
  of it has been copied.

The two headers take turns, so a half-written header leaves the other one intact. Pages are on the
disk before the header is, whatever ``fsync`` says. So a power cut can cost the last updates but not
the file. A log that follows a newer header than the intact one is damage. ``open`` refuses a
damaged log, and ``colmatch recover`` cuts it before the damage (``recovery.py``). A build and
``compact`` write a new file beside the old one, and rename it.

The log may grow to 32 MiB before a checkpoint. With 8 MiB, every hundredth insert waited for the
disk, and this took three quarters of the mean time. Records of operations, as in a journal, would
be shorter than pages. But then reading would need all pages of the file to be from one moment.

Readers take no lock. Each page has the number of the update that wrote it. A batch that meets a
half-written page, or a page newer than its state, begins again with the current state. A lock on
the log keeps a second writer out. Batches of one matcher take turns at its cache. Processes do not.

Memory holds the cache, the descriptions of attributes, and string literals. It also holds six bytes
for each conjunction: needed count, remaining count, and room in the list of complete ones.

**SQLite was tried** for pages, log and locks, with one row for each page. It saved 642 of 3,705
lines here. With a million ``dense`` subscriptions, an event and an update took up to 1.3 times as
long. A build took 1.35 times as long, and the file 1.13 times the disk (2026-11-25,
``asv_benchmarks/pages_sqlite.py 1000000``). A build over another one exchanges all rows. Reading
such a file from a cold disk takes 1.5 to 2 times as long. Kills, power cuts, failing writes and
flips in pages did no harm. But, as ``pages_sqlite_faults.py`` shows:

- a flipped bit in the log silently drops a finished update and all updates after it;
- a process that opens and closes its own file, for example to copy it, loses its locks and then
  updates;
- a child forked while the file is open reads two states in one transaction, whoever connected;
- the log of another file, such as a replaced one, is taken for the log of the file;
- the log never starts over while somebody is always reading.
"""
