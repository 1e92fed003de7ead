"""bitslice: work shared between the events of a batch.

``arrays`` says how the index lies in memory, ``match`` reads it, ``build`` makes it. A batch goes
through ``columns``, ``postings``, ``tiles``, ``masks`` and ``results``.

No source paper shares work between events; a batch of columns allows it. The *access predicate* of
a conjunction is the one that the fewest events are expected to satisfy. The conjunction is *posted*
under it, once for each of its intervals. Postings are ordered by attribute, by width of the
interval in powers of four, and by its lowest code. The conjunctions are put in the same order, so
what a batch reads together stands together.

*By column.* The rows that have an attribute are sorted by code, so an access predicate is a range
of positions, found by one look-up for each posting. Rows outside it are never touched. The first
three predicates of a posting are tested without a branch, and what is left of them by the others.
An AND is an AND of masks, IN an OR, NOT a complement, and a program hands masks along its jumps
(``run_program``), so nothing is multiplied out. A word of 64 positions begins where the rows of the
posting begin, not at a multiple of 64.

*By row.* Some attributes have too few postings to pay for tiles of their rows, and single events
have no rows to share. Each row's code then picks the postings that can contain it: within a group
of like widths these are neighbours, and hints say where they begin and end. The ranges are found
column by column, ordered by row, and tested on the tile of one row. ``choose_columns`` decides for
each column and batch.

*Bins, not ranks.* Codes are cut into bins when the index is built, each with as many ends of
predicates as any other. Only predicates that end within a value's own bin are undecided, a share of
2 in the number of bins. Where an attribute has no more codes than bins, masks decide alone. Ranks
of the boundaries among a batch's own values were the alternative: they map every boundary for every
batch.

*Tiles, not tables.* A table with the rows below each boundary as a mask makes a range ``table[high]
& ~table[low]``; the prototype in ``asv_benchmarks`` does that. Such a table has a bit for a
boundary and row, a tile a byte for an attribute and row: a twelfth of the memory for 100 attributes
with 100 values. Comparing costs ten instructions more than looking up, building tables costs more
than that.

``ask_for`` is a prefetch. Ordering pairs by event, where every store goes to another line, takes
4.7 ns a pair with it and 6.6 without; filling tiles becomes a third faster.

Tried and lost, at a million subscriptions over 100 attributes, batches of 4,096, in microseconds an
event for the kernel alone unless said otherwise. With tables of masks:

- searching the positions of each posting instead of a look-up by code: 14 against 9;
- passing NamedTuples to the function that handles survivors: 9 against 7, and 10 s more to compile
  (with references counted, see ``_jit.POLICY``).

With tiles:

- one loop over all words of all ranges without a branch on where a posting ends: 8.4 against 7.6,
  since its state waits for itself;
- classes of width finer than powers of four: no gain by column nor by row;
- numbering subscriptions in the order of the index, so that their ids are read in order: no gain
  beyond the noise;
- tiles of two to eight rows instead of one where no column is sorted: no gain;
- partitioning pairs by 64 rows before ordering them: 7.9 ns a pair against 6.6;
- comparing all of a small group instead of a binary search for the postings of a row: 5.2 against
  4.1.

An event with 382 matches takes 8.9 us: active ranges 2.0, ordering matches and giving ids 1.8,
writing matches 1.1, predicates after the third 0.9, filling tiles 0.7, equal codes 0.7, reading and
transposing 0.3. The loop over ranges is some 50 instructions for 64 rows and three predicates, half
of them vector instructions. ``perf`` and the disassembly show no wait in it but for the mask.
"""
