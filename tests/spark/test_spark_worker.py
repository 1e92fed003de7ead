"""How the index gets to Spark's workers, and what they do with it."""

import gc
import os
import subprocess
import sys
import weakref

import numpy as np
import pyarrow as pa
import pytest
from pyspark.serializers import CloudPickleSerializer

from colmatch.errors import EventError
from colmatch.given.options import Options
from colmatch.matcher import Matcher
from colmatch.matching import pieces
from colmatch.spark import shipping
from colmatch.spark import worker as spark_worker
from colmatch.spark.frames import match
from colmatch.spark.manifest import Manifest, Shard, hash_in, publish
from colmatch.spark.storage import Folder
from colmatch.spark.worker import IndexFile, PartitionTask, open_index
from colmatch.store.file import content_hash

AGE = {"age": "int64"}


@pytest.fixture(scope="module")
def events(spark):
    return spark.sql("SELECT id, id AS age FROM range(5)")


@pytest.fixture
def cache():
    """This process's cache of opened indexes, which is a worker's when a test runs a task here."""
    spark_worker._opened.clear()
    yield spark_worker._opened
    spark_worker._opened.clear()
    gc.unfreeze()


def found(result):
    return sorted((row.id, row.subscription) for row in result.collect())


def saved_index(matcher, path):
    matcher.save(path)
    return IndexFile(content_hash(path), str(path), str(path), artifact=False)


# --------------------------------------------------------------------------
# how the index gets there


@pytest.mark.parametrize("shared", [None, True, False])
def test_path(events, tmp_path, shared, monkeypatch):
    Matcher.build({100: "age >= 3"}, AGE).save(tmp_path / "alerts")
    monkeypatch.chdir(tmp_path)
    address = (tmp_path / "alerts").as_uri()
    for path in ("alerts", tmp_path / "alerts", address, address.replace("///", "/")):
        assert found(match(events, path, keep="id", shared=shared)) == [(3, 100), (4, 100)]


def test_the_index_is_sent_once_and_only_where_it_must_be(spark, events, tmp_path, monkeypatch):
    matcher = Matcher.build({101: "age = 1"}, AGE)
    matcher.save(tmp_path / "alerts")
    sent = []
    send = spark.addArtifact
    monkeypatch.setattr(type(spark), "addArtifact", lambda self, path, file: (sent.append(path), send(path, file=file)))
    assert (
        found(match(events, tmp_path / "alerts", keep="id")) == found(match(events, matcher, keep="id")) == [(1, 101)]
    )
    assert sent == []
    for index in (tmp_path / "alerts", matcher, tmp_path / "alerts"):  # the same content
        assert found(match(events, index, keep="id", shared=False)) == [(1, 101)]
    assert len(sent) == 1


def test_many_versions_in_a_session_are_a_warning(events, monkeypatch, caplog):
    """Spark keeps every artifact until the session ends, and gives all to each new executor."""
    monkeypatch.setattr(type(events.sparkSession), "addArtifact", lambda *_, **__: None)
    monkeypatch.setattr(shipping, "_sent", {})
    for id in range(shipping.SENT_MOST + 2):
        match(events, Matcher.build({id: "age = 104"}, AGE), shared=False)
        warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(warned) == (id + 1 >= shipping.SENT_MOST)
    assert warned[0].startswith(f"{shipping.SENT_MOST} versions of indexes were sent to the workers of this session")


def test_a_map_without_types_is_an_error_in_words(events):
    untyped = events.sparkSession.sql("SELECT 1L AS id, 1L AS age, map() AS more")
    matcher = Matcher.build({1: "age = 1"}, AGE)
    assert found(match(untyped, matcher, keep="id")) == [(1, 1)]
    with pytest.raises(
        EventError, match=r"these types as Arrow: .*map<void,void>.*; give map\(\) types, as in CAST\(map\(\) AS MAP"
    ):
        match(untyped, matcher, keep="more")


def test_where_files_cannot_be_linked(events, tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", refuse)
    matcher = Matcher.build({102: "age = 2"}, AGE)
    matcher.save(tmp_path / "alerts")
    for index, shared in ((tmp_path / "alerts", None), (matcher, None), (tmp_path / "alerts", False), (matcher, False)):
        assert found(match(events, index, keep="id", shared=shared)) == [(2, 102)]


def test_few_versions_are_held(tmp_path):
    path = tmp_path / "alerts"
    links = []
    for id in range(shipping.VERSIONS_KEPT + 2):
        Matcher.build({id: "age = 103"}, AGE).save(path)
        links.append(shipping._link_version(path)[0])
        assert shipping._link_version(path)[0] == links[-1]
    assert [link.exists() for link in links] == [False] * 2 + [True] * shipping.VERSIONS_KEPT


def test_a_query_keeps_its_version_of_a_replaced_index(events, tmp_path):
    Matcher.build({1: "age = 1"}, AGE).save(tmp_path / "alerts")
    old = match(events, tmp_path / "alerts", keep="id")
    assert found(old) == [(1, 1)]
    Matcher.build({2: "age = 2"}, AGE).save(tmp_path / "alerts")
    new = match(events, tmp_path / "alerts", keep="id")
    assert found(new) == [(2, 2)]
    assert found(old) == [(1, 1)]


def test_a_replaced_or_missing_shared_index_is_an_error(events, tmp_path):
    path = tmp_path / "alerts"
    Matcher.build({77: "age = 1"}, AGE).save(path)  # content that no worker has in its cache
    planned = match(events, path, keep="id", shared=True)
    Matcher.build({78: "age = 2"}, AGE).save(path)
    with pytest.raises(Exception, match="was replaced"):
        planned.collect()
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="is not visible on the worker"):
        planned.collect()


def test_the_task_is_small(tmp_path):
    index = saved_index(Matcher.build({i: f"age = {i}" for i in range(20_000)}, AGE), tmp_path / "alerts")
    assert (tmp_path / "alerts").stat().st_size > 400_000
    task = PartitionTask(index, 1, ((0, "age"),), "pairs", ("id", "subscription"))
    assert len(CloudPickleSerializer().dumps(task)) < 1_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_workers_share_the_mapped_file(spark, tmp_path):
    rng = np.random.default_rng(5)
    texts = {
        i: f"age BETWEEN {a} AND {a + 9} AND city = 'c{i}'"
        for i, a in enumerate(rng.integers(0, 1000, 20_000).tolist())
    }
    path = tmp_path / "alerts"
    index = saved_index(Matcher.build(texts, {"age": "int64", "city": "string"}), path)
    name = str(path)

    def report(partition):
        import os
        import time

        import pyarrow as pa

        from colmatch.spark.worker import open_index

        matcher = open_index(index)
        for _ in partition:
            events = pa.record_batch({"age": pa.array(range(1000)), "city": pa.array(["c1"] * 1000)})
            sum(len(pairs) for pairs in matcher.match_batches(events))
            time.sleep(3)  # so that both partitions are at work, each in a process of its own
            sums = {"Rss": 0, "Shared_Clean": 0, "Private_Dirty": 0}
            inode, mine = "", False
            with open("/proc/self/smaps") as lines:
                for line in lines:
                    words = line.split()
                    if "-" in words[0] and ":" not in words[0]:
                        mine = len(words) > 5 and words[5].startswith(name)
                        inode = words[4] if mine else inode
                    elif mine and words[0][:-1] in sums:
                        sums[words[0][:-1]] += int(words[1])
            yield pa.record_batch(
                {"pid": [os.getpid()], "inode": [inode], **{key: [value] for key, value in sums.items()}}
            )

    spark.range(2).repartition(2).count()
    result = "pid long, inode string, Rss long, Shared_Clean long, Private_Dirty long"
    workers = spark.range(0, 2, 1, 2).mapInArrow(report, result).collect()
    assert len({worker.pid for worker in workers}) == 2
    assert len({worker.inode for worker in workers}) == 1 and workers[0].inode
    for worker in workers:
        assert worker.Rss > 0 and worker.Private_Dirty == 0
        assert worker.Shared_Clean > worker.Rss // 2


# --------------------------------------------------------------------------
# a task by itself


def small_task(tmp_path, texts, names=("id", "subscription"), mode="pairs", **options):
    index = saved_index(Matcher.build(texts, AGE, options=Options(**options)), tmp_path / "alerts")
    return PartitionTask(index, 1, ((1, "age"),), mode, names)


def partition(rows, size, text="x"):
    for start in range(0, rows, size):
        ids = list(range(start, min(rows, start + size)))
        yield pa.record_batch({"c0": pa.array([f"{text}{i}" for i in ids]), "c1": pa.array(ids, pa.int64())})


def test_small_batches_are_gathered(tmp_path, cache):
    task = small_task(tmp_path, {1: "age >= 0"}, batch_rows=256)
    sizes = [len(batch) for batch in task(partition(1000, 10))]
    assert sum(sizes) == 1000 and len(sizes) <= 5


@pytest.mark.parametrize("lists", [False, True])
def test_output_batches_are_bounded(tmp_path, cache, monkeypatch, lists):
    monkeypatch.setattr(spark_worker, "PAIRS_MOST", 100)
    texts = {i: f"age >= {i * 10}" for i in range(150)}
    task = small_task(
        tmp_path, texts, ("id", "subscriptions" if lists else "subscription"), "lists" if lists else "pairs"
    )
    batches = list(task(partition(2000, 500)))
    table = pa.Table.from_batches(batches)
    if lists:
        assert all(len(batch.column(1).flatten()) <= 100 or len(batch) == 1 for batch in batches)
        assert table["id"].to_pylist() == [f"x{i}" for i in range(2000)]
        assert table["subscriptions"].type == pa.list_(pa.int64())
        assert all(
            sorted(subs) == list(range(min(150, i // 10 + 1)))
            for i, subs in enumerate(table["subscriptions"].to_pylist())
        )
    else:
        assert max(map(len, batches)) <= 100
        assert table["id"].to_pylist() == [f"x{i}" for i in range(2000) for _ in range(min(150, i // 10 + 1))]
        assert sorted(table.to_pylist(), key=lambda row: (int(row["id"][1:]), row["subscription"])) == [
            {"id": f"x{i}", "subscription": s} for i in range(2000) for s in range(min(150, i // 10 + 1))
        ]


def test_output_batches_are_bounded_in_bytes(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(pieces, "BYTES_MOST", 1 << 20)
    task = small_task(tmp_path, dict.fromkeys(range(50), "age >= 0"))
    batches = list(task(partition(40, 40, text="y" * 100_000)))
    assert sum(map(len, batches)) == 2000
    assert max(len(batch) for batch in batches) <= 11


def test_a_worker_opens_a_version_once(tmp_path, cache):
    index = saved_index(Matcher.build({1: "age = 1"}, AGE), tmp_path / "alerts")
    first = open_index(index)
    assert open_index(index) is first
    assert first.options.threads == 1  # Spark runs a worker for each core
    newer = saved_index(Matcher.build({2: "age = 2"}, AGE), tmp_path / "alerts")
    assert newer.hash != index.hash
    assert open_index(newer) is not first
    assert list(cache) == [newer.hash]


def test_a_worker_keeps_few_indexes(tmp_path, cache):
    matchers = [Matcher.build({i: "age = 1"}, AGE) for i in range(spark_worker.MATCHERS_MOST + 2)]
    indexes = [saved_index(matcher, tmp_path / f"alerts{i}") for i, matcher in enumerate(matchers)]
    for index in indexes[:-1]:
        open_index(index)
    open_index(indexes[1])
    open_index(indexes[-1])
    assert list(cache) == [index.hash for index in [*indexes[3:-1], indexes[1], indexes[-1]]]


class Held:
    """A part of a circle of references, which only the garbage collector frees."""

    def __init__(self):
        self.me = self


def test_the_collector_of_spark_passes_over_an_open_index(tmp_path, cache):
    """PySpark calls ``gc.collect`` after each task, over numba's objects if they are not hidden."""
    gc.unfreeze()
    first = saved_index(Matcher.build({1: "age = 1"}, AGE), tmp_path / "alerts")
    other = saved_index(Matcher.build({2: "age = 2"}, AGE), tmp_path / "others")
    open_index(first)
    assert gc.get_freeze_count() > 20 * len(gc.get_objects())
    held = Held()
    left = weakref.ref(held)
    open_index(other)
    del held
    matcher = weakref.ref(open_index(first))
    gc.collect()
    assert left() is not None, "it is not hidden"
    open_index(saved_index(Matcher.build({3: "age = 3"}, AGE), tmp_path / "alerts"))
    assert matcher() is None and left() is None


def test_shards_that_are_opened_in_turn_cost_no_collection(tmp_path, cache, monkeypatch):
    collected = []
    monkeypatch.setattr(spark_worker, "_hide_objects", lambda: collected.append(1))
    folder = Folder(tmp_path)
    shards = [folder.put(f"shard-{i:05}", Matcher.build({i: f"age = {i}"}, AGE)) for i in range(6)]
    model = folder.put("model", Matcher.build({}, AGE))[0]
    parts = tuple(Shard(name, 1, size) for name, size in shards)
    name = publish(folder, Manifest(1, parts, "int64", model))
    sharded = open_index(IndexFile(hash_in(name), "x", name, artifact=False, folder=folder.address))
    events = pa.record_batch({"age": pa.array(range(6))})
    assert sharded.count(events).tolist() == [1] * 6 and len(cache) == spark_worker.MATCHERS_MOST
    assert collected == [1]


def test_the_worker_side_does_not_import_pyspark():
    code = "import sys, colmatch.spark.worker; print('pyspark' in sys.modules, 'pandas' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.stdout.split() == ["False", "False"], ran.stderr
