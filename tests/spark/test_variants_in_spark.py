"""Spark: columns of VARIANT, in each way from a DataFrame to a matcher, against ``df.where``."""

import pytest
import spark_ways
from pyspark.errors import PySparkException

from colmatch.spark import build, register_source

RULES = {
    1: "v:a::int >= 2",
    2: "variant_get(v, '$.user.name', 'string') = 'n1'",
    3: "v IS NULL",
    4: "is_variant_null(v:b)",
    5: "try_variant_get(v, '$.tags[0]', 'int') IS NULL",
    6: "v:tags[1]::double > 0.4 AND nr < 5",
    7: "NOT (v:user.name::string LIKE 'n%')",
}
JSON = """
    concat('{"a": ', id, ', "b": null, "tags": ["x", ', id / 4, '], "user": {"name": "', IF(id = 4, 'm', 'n'), id % 2, '"}}')
"""


@pytest.fixture
def variants(spark, conf, tmp_path):
    """Returns a function that writes variants to a file and returns the frame of the file."""

    def written(is_shredded):
        conf("spark.sql.variant.writeShredding.enabled", str(is_shredded).lower())
        path = str(tmp_path / "events.parquet")
        spark.sql(
            f"SELECT id AS nr, parse_json(CASE id WHEN 3 THEN NULL WHEN 6 THEN '[7]' ELSE {JSON} END) AS v FROM range(8)"
        ).write.parquet(path)
        return spark.read.parquet(path)

    conf("spark.sql.legacy.sizeOfNull", "false")
    register_source(spark)
    return written


def test_every_way_takes_variants(spark, variants, tmp_path):
    df = variants(is_shredded=False)
    assert df.schema["v"].dataType.simpleString() == "variant"
    wanted = {(row.nr, id) for id, text in RULES.items() for row in df.where(text).collect()}
    assert {id for _, id in wanted} == {*RULES}
    for way, pairs in spark_ways._ways(spark, df, build(RULES, df), tmp_path).items():
        assert sorted(pairs()) == sorted(wanted), way


def test_files_of_shredded_variants(spark, variants, tmp_path):
    """Spark 4.3 writes such files by default. A DataFrame of them has plain variants."""
    df = variants(is_shredded=True)
    wanted = {(row.nr, id) for id, text in RULES.items() for row in df.where(text).collect()}
    ways = spark_ways._ways(spark, df, build(RULES, df), tmp_path)
    assert sorted(ways["match"]()) == sorted(wanted)
    with pytest.raises(PySparkException, match="shredded variant.*spark.sql.variant.writeShredding.enabled"):
        ways["source"]()
