"""Uses an installed wheel where nothing can be compiled.

It is run with COLMATCH_KERNELS=ready, outside the repository. Asking numba to compile is an error.
"""

import os
import sys
import tempfile
import time
from random import Random

import numba.core.dispatcher
import pyarrow as pa

import colmatch as cm
from colmatch.kernels import _jit


def forbidden(*_, **__):
    raise AssertionError("numba was asked to compile")


numba.core.dispatcher._FunctionCompiler.compile = forbidden
assert _jit.MODE == "ready" and "site-packages" in cm.__file__, cm.__file__
began = time.perf_counter()

alerts = {
    "cheap": "price < 100 AND dest IN ('LIS', 'OPO')",
    "long weekend": "nights BETWEEN 3 AND 4 AND NOT (price > 400 OR dest LIKE 'L%')",
    "anything new": "dest IS NOT NULL",
}
matcher = cm.Matcher.build(alerts, {"price": "double", "dest": "string", "nights": "int32"})
offers = pa.table(
    {"price": [89.5, 310, None], "dest": ["LIS", "NCE", "LIS"], "nights": pa.array([2, 4, 3], pa.int32())}
)
assert matcher.match_lists(offers).to_pylist() == [
    ["cheap", "anything new"],
    ["long weekend", "anything new"],
    ["anything new"],
]

rng = Random(0)
names = [f"a{i}" for i in range(20)]
events = pa.table({name: [rng.randrange(100) for _ in range(500)] for name in names})
texts = {
    i: " AND ".join(f"{rng.choice(names)} {rng.choice('<>=')} {rng.randrange(100)}" for _ in range(4))
    for i in range(2000)
}
schema = dict.fromkeys(names, "int64")
expected = None
with tempfile.TemporaryDirectory() as folder:
    for kind in [*cm.index_kinds(), "pages"]:
        index = cm.index("pbtree", path=f"{folder}/pages") if kind == "pages" else kind
        with cm.Matcher.build(texts, schema, index=index) as matcher:
            matcher.insert({-1: "a0 >= 0", -2: "a1 < 0"})
            matcher.delete([-2])
            found = matcher.match(events)
            assert expected is None or found == expected, kind
            expected = found
            assert matcher.match_topk(events, 3).num_rows >= 500
            if kind != "pages":
                matcher.save(f"{folder}/saved")
                assert cm.Matcher.open(f"{folder}/saved").match(events) == expected, kind
print(f"ten lines and {len(cm.index_kinds())} kinds in {time.perf_counter() - began:.1f} s")

domains = cm.betree.Domains("""
    age            | integer     | false | 0 | 150
    city           | string      | true
    interests      | string list | true
    now            | integer     | true
    frequency_caps | frequency   | true
""")
campaigns = {
    1: 'age >= 18 and city in ("NYC", "LA")',
    2: 'not (interests one of ("golf", "cars")) and within_frequency_cap("flight", "shop", 3, 3600)',
}
matcher = cm.Matcher.build(campaigns, domains, language="betree", constants={2: {"flight_id": 7}})
lines = '{"age": 36, "city": "LA", "now": 9000, "frequency_caps": [[["flight", 7, "shop"], 3, 1000000]]}'
assert matcher.match(cm.betree.events(lines, domains)).num_rows == 2
print("be-tree's language")

if "spark" in sys.argv:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import colmatch.spark

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    frame = spark.createDataFrame(events.to_pylist(), ", ".join(f"{name} bigint" for name in names))
    ansi = spark.conf.get("spark.sql.ansi.enabled") == "true"
    matcher = cm.Matcher.build(texts, schema, options=cm.Options(ansi=ansi))
    assert colmatch.spark.match(frame, matcher).count() == matcher.match(events).num_rows
    spark.stop()
    print("Spark")
