"""bitslice: work shared between the events of a batch.

``arrays`` describes the index in memory, ``match`` reads it, ``build`` builds it. A batch passes
through ``columns``, ``postings``, ``tiles``, ``masks`` and ``results``.

No source paper shares work between events; a batch of columns allows it. The *access predicate* of
a conjunction is the predicate that the fewest events are expected to satisfy. The conjunction is
*posted* under it, once for each of its intervals. Postings are ordered by attribute, by width of
the interval in powers of four, and by its lowest code. The conjunctions are put in the same order,
so a batch reads neighbouring places in memory.

*By column.* The rows that have an attribute are sorted by code. An access predicate then covers a
range of positions, and one look-up for each posting finds it. Rows outside it are never touched.
The first three predicates of a posting are tested without a branch, the others on the rows left. An
AND is an AND of masks, an IN is an OR, and a NOT is a complement. A program hands masks along its
jumps (``run_program``), so nothing is multiplied out. A word of 64 positions begins with the first
row of the posting, not at a multiple of 64.

*By row.* Some attributes have too few postings to pay for tiles of their rows. Single events have
no rows to share. Then each row's code picks the postings that can contain it. Within a group
of similar widths these postings are neighbours, and hints give their begin and end. The ranges are
found column by column, ordered by row, and tested on the tile of one row. ``choose_columns``
decides for each column and batch.

*Bins, not ranks.* Codes are cut into bins when the index is built. Each bin has as many ends of
predicates as any other. Only predicates that end within a value's own bin are undecided, a share of
2 in the number of bins. Masks alone decide an attribute that has no more codes than bins. Ranks of
the boundaries among a batch's own values were the alternative: they map every boundary for every
batch.

*Tiles, not tables.* A table holds for each boundary a mask of the rows below it. A range is then
``table[high] & ~table[low]``, as in the prototype in ``asv_benchmarks``. Such a table has a bit for
each boundary and row, a tile has a byte for each attribute and row. For 100 attributes with 100
values, a tile takes a twelfth of the memory. Comparing costs ten instructions more than looking up,
but building tables costs more than that.

``ask_for`` is a prefetch. Ordering pairs by event writes each pair to another cache line. It takes
4.7 ns a pair with the prefetch and 6.6 without. Filling tiles becomes a third faster.

Tried and lost, at a million subscriptions over 100 attributes, in batches of 4,096. Figures are
microseconds an event for the kernel alone, unless they have another unit. With tables of masks:

- searching the positions of each posting instead of a look-up by code: 14 against 9;
- passing NamedTuples to the function that handles survivors: 9 against 7, and 10 s more to compile
  (with references counted, see ``_jit.POLICY``).

With tiles:

- one loop over all words of all ranges, without a branch at a posting's end: 8.4 against 7.6, since
  its state waits for itself;
- classes of width finer than powers of four: no gain by column nor by row;
- numbering subscriptions in the order of the index, so that their ids are read in order: no gain
  beyond the noise;
- tiles of two to eight rows instead of one if no column is sorted: no gain;
- partitioning pairs by 64 rows before ordering them: 7.9 ns a pair against 6.6;
- comparing all of a small group instead of a binary search for the postings of a row: 5.2 against
  4.1;
- counting the matches of each row while they are written, instead of in a pass of its own: no gain.

An event with 382 matches takes 7.5 us. Active ranges take 1.8, ordering matches 1.7, equal codes
and filling tiles 1.1, writing matches 0.9, predicates after the third 0.8. Reading and transposing
take 0.3. The loop over ranges is some 50 instructions for 64 rows and three predicates, half of
them vector instructions. With AVX-512 it is 25, and an event takes 3 to 10 % less. Tiles of 64 to
512 KB make no difference.
"""
