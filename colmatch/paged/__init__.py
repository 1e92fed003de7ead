"""Matchers that live in a file of pages: ``file`` keeps pages, ``store`` what stands in them.

**After a kill** every finished update is there. The log beside the file gets the pages that an
update has changed, as one record (``store/log.py``). An update is there when all of it is. Pages in
the file are changed only by a *checkpoint*, a copy from the log. The log is forgotten only when a
header of the next generation is on the disk:

- killed while the log is written: the last update is not whole, and was never finished;
- killed while pages are copied: the header is the old one, so the log counts, and has all of these
  pages;
- killed behind the new header: a log of an older generation does not count, and all of it has been
  copied.

The two headers take turns, so one that is half written leaves the other. Pages are on the disk
before the header is, whatever ``fsync`` says. So a power cut can cost the last updates but not the
file. A log that follows a newer header than the whole one is damage. ``open`` refuses a damaged
log, and ``colmatch recover`` cuts it before the damage (``recovery.py``). A build and ``compact``
write a file beside the other one, and rename it.

The log may have 32 MiB before it is copied. With 8 MiB, every hundredth insert waited for the disk,
which was three quarters of the mean. Records of what was done, as in a journal, would be shorter
than pages. But then all pages of the file would have to be of one moment when they are read.

Readers ask for no lock. A page says which update wrote it. A batch that meets a page newer than its
state, or one that is half written, begins again with the state of then. A lock on the log keeps a
second writer out. Batches of one matcher take turns at its cache, processes do not.

In memory stay the cache, the descriptions of attributes, string literals, and six bytes for each
conjunction: what it needs, what is left, and room for what is complete.

**SQLite was tried** for pages, log and locks: each page a row. 642 of 3,705 lines here went. With a
million ``dense`` subscriptions an event and an update took up to 1.3 times as long, a build 1.35,
and the file 1.13 times the disk (2026-11-25, ``asv_benchmarks/pages_sqlite.py 1000000``). A build
in the place of another, all of whose rows are exchanged, is read 1.5 to 2 times as long from a cold
disk. Kills, power cuts, failing writes and flips in pages did no harm. But, as
``pages_sqlite_faults.py`` shows:

- a flipped bit of the log drops finished updates, that one and all behind it, without a word;
- a process that opens and closes its own file, as to copy it, loses its locks and then updates;
- a child forked while the file is open reads two states in one transaction, whoever connected;
- the log of another file, such as one that was replaced, is taken for that of the file;
- the log is never begun anew while there is always somebody who reads.
"""
