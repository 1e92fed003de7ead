"""Clauses of ads, audiences, alerts and fraud rules in five dialects, and a table for them.

``TAKEN`` are clauses that colmatch takes, each with its result in each row: T, f, or N for NULL.
The letter before the clause says who is the judge of it: s for Spark, d for DuckDB, h for results
by hand. ``REFUSED`` are clauses that colmatch refuses, with words of the error and the clause that
follows from them. ``LATER`` are clauses that have no cure yet.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as D
from typing import Any, NamedTuple

import pyarrow as pa

import colmatch as cm

SCHEMA = cm.Schema(
    {
        "id": "bigint", "age": "int", "price": "double", "amount": "decimal(10, 2)", "qty": "int", "name": "string",
        "city": "string", "country": "string", "email": "string", "status": "string", "vip": "boolean", "active": "boolean",
        "day": "date", "seen": "date", "ts": "timestamp", "tags": "array<string>", "nums": "array<int>",
        "attrs": "map<string, string>", "user": "struct<id: bigint, tier: string, score: double>", "flags": "int",
        "ip": "string", "payload": "string", "items": "array<struct<sku: string, price: double>>",
    }
)  # fmt: skip
T, F, N = True, False, None


def _day(text: str | None) -> dt.date | None:
    return None if text is None else dt.date.fromisoformat(text)


def _at(text: str | None) -> dt.datetime | None:
    return None if text is None else dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


_COLUMNS: dict[str, list[Any]] = {
    "id": [1, 2, 3, 4, 5, 6, 7, 8],
    "age": [30, 41, N, 25, 34, 17, 66, 30],
    "price": [89.5, 310.0, 120.0, N, float("nan"), 0.0, 45.25, 110.0],
    "amount": [D("10.50"), D("0.00"), N, D("99.99"), D("100.00"), D("-5.25"), D("12.00"), D("250.10")],
    "qty": [5, 2, 3, 0, N, 1, -5, 5],
    "name": ["Ann", "Bob", "anna", "Cara", N, "", "Bo b", "Dan"],
    "city": ["Nice", "Berlin", "Paris", N, "Nice", "Lyon", "nice", "Rome"],
    "country": ["FR", "DE", "FR", "US", N, "FR", "ES", "IT"],
    "email": ["ann@example.com", "bob@shop.org", "anna@example.com", N, "x1@y.de", "lee", "cara@mail.org", "dan@example.com"],
    "status": ["paid", "void", "sent", "true", N, "no", "paid", "1"],
    "vip": [T, F, N, T, F, F, T, N],
    "active": [T, T, F, N, F, T, F, T],
    "day": [*map(_day, ("2024-01-31", "2024-02-29", N, "2023-12-31", "2024-01-01", "2024-06-15", "2024-02-01", "2020-05-03"))],
    "seen": [*map(_day, ("2024-02-10", "2024-02-29", "2024-01-01", N, "2024-01-03", "2024-06-10", "2024-03-01", "2020-05-03"))],
    "ts": [*map(_at, ("2024-01-31T12:00:00", "2024-01-31T23:30:00", N, "2024-02-29T00:00:00", "2024-01-01T22:15:00",
                      "2024-06-15T08:00:00", "2023-12-31T23:59:59", "2024-01-31T12:00:01"))],
    "tags": [["sport", "news"], ["news"], [], N, ["sport", N], ["travel", "sport", "food"], [N], ["music"]],
    "nums": [[1, 7], [5], [], N, [6, N], [2], [N], [0]],
    "attrs": [[("os", "ios")], [("os", "android"), ("v", "2")], [], N, [("os", N)], [("v", "1")], [("os", "web")], [("os", "ios")]],
    "user": [
        {"id": 7, "tier": "gold", "score": 0.75}, {"id": 8, "tier": "basic", "score": 0.2}, N, {"id": 7, "tier": N, "score": N},
        {"id": 9, "tier": "gold", "score": 0.45}, {"id": N, "tier": "silver", "score": 1.0}, {"id": 1, "tier": "basic", "score": 0.5},
        {"id": 2, "tier": "gold", "score": 0.1},
    ],
    "flags": [5, 0, 12, N, 4, -1, 8, 1],
    "ip": ["10.1.2.3", "192.168.1.1", N, "10.255.0.1", "::1", "8.8.8.8", "172.16.0.1", "10.0.0.1"],
    "payload": ['{"a": 1}', '{"a": "1"}', "12", N, "x", "1.5", "{}", "[]"],
    "items": [
        [{"sku": "a", "price": 12.0}], [{"sku": "b", "price": 5.0}], [], N, [N],
        [{"sku": "a", "price": 1.0}, {"sku": "c", "price": 20.0}], [{"sku": N, "price": N}], [{"sku": "d", "price": 10.0}],
    ],
}  # fmt: skip
EVENTS = pa.table(
    {field.name: pa.array(_COLUMNS[field.name], field.type) for field in SCHEMA.arrow}, schema=SCHEMA.arrow
)


class Refused(NamedTuple):
    dialect: str
    clause: str
    said: str  # words of the error
    cured: str  # the clause that they lead to
    rows: str


class Taken(NamedTuple):
    dialect: str
    clause: str
    judge: str
    rows: str


_TAKEN: dict[str, str] = {}
_TAKEN["spark"] = r"""
TfNNTfNf s get(tags, 0) = 'sport'
TfNfffff s dayname(day) = 'Wed'
fTffNfff s trim(both ' ' from name) = 'Bob'
TTTNTfTT s REGEXP_INSTR(email, '@') > 0
TfffNfff s encode(name, 'utf-8') = X'416E6E'
TfTfNTff s parse_url(concat('https://shop.de/?q=', country), 'QUERY', 'q') = 'FR'
ffNffffT s format_number(amount, 1) = '250.1'
TfTfNfff s soundex(name) = 'A500'
TTNfTTTf s year(CAST(day AS STRING)) = 2024
TfNfNfff s age BETWEEN 25 AND 34 AND country IN ('FR', 'DE')
TfffNTff s country = 'FR' AND city <> 'Paris'
TfNTffTN s vip = 1
fTNfTTTN s vip = 0 OR age > 40
TfNTffTN s vip = 'true'
fTfffTfN s active IS TRUE AND NOT vip
fTfffTfT s active = true AND vip IS NOT TRUE
TTffffff s (country, city) IN (('FR', 'Nice'), ('DE', 'Berlin'))
ffTTTTTT s (country, city) NOT IN (('FR', 'Nice'), ('DE', 'Berlin'))
Tfffffff s (country, age) = ('FR', 30)
fTTTTTTT s (country, city) <> ('FR', 'Nice')
NNNNNNNN s NULL <> age
TTNTTfTT s 18 <= age
TffNfTTf s 100 > price
TfTfNTff s 'FR' = country
fTTNfTTT s 'Nice' <> city
TffffffT s 5 <=> qty
fTNfTfTf s +age > 30
fTNfTfTf s -age < -30
TfffNffT s - (-qty) = 5
TfTNTTff s flags & 4 = 4
TffNffff s flags << 1 = 10
TffNTfff s flags >> 1 = 2
TffNTfff s shiftright(flags, 2) = 1
TffNTfff s flags | 1 = 5
TffNffff s flags ^ 1 = 4
TTTNTfTT s position('@' IN email) > 0
TTfNfffT s position('@', email) = 4
TTTNTfTT s instr(email, '@') > 0
TTTNTfTT s locate('@', email) > 1
TfffNfff s name LIKE 'A%'
fTTTNTTT s name NOT LIKE 'A%'
TTffNfTf s name LIKE ANY ('A%', 'B%')
ffTfNffT s name LIKE ALL ('%a%', '%n%')
TTffNfTf s name LIKE SOME ('A%', 'B%')
TTTTNTTT s name NOT LIKE ANY ('A%', 'B%')
ffTTNTfT s name NOT LIKE ALL ('A%', 'B%')
TfTfNfff s name ILIKE 'ann%'
TTTfNfff s name ILIKE ANY ('ann%', 'bob')
TTTNffTT s email RLIKE '^[a-z]+@'
TTTNffTT s regexp_like(email, '^[a-z]+@')
fTfNTTTf s email NOT RLIKE 'example'
TfTNfffT s email REGEXP 'example'
TfTNfffT s regexp(email, 'example')
TffNTTNf s array_contains(tags, 'sport')
fTTNffNT s NOT array_contains(tags, 'sport')
TTfNTTNf s arrays_overlap(tags, array('sport', 'news'))
TffNTTff s size(tags) > 1
ffTNffff s size(attrs) = 0
TffNTfff s cardinality(tags) = 2
TfNNNNfT s attrs['os'] = 'ios'
TfNNNNfT s element_at(attrs, 'os') = 'ios'
TTNNNNfT s attrs.os IN ('ios', 'android')
TTfNTfTT s map_contains_key(attrs, 'os')
TfNNffff s user.tier = 'gold' AND user.score >= 0.5
TfNNTfNf s tags[0] = 'sport'
TfNNTfNf s element_at(tags, 1) = 'sport'
TffTfTTf s coalesce(price, 0) < 100
fffTffff s nvl(city, '') = ''
fffTTfff s ifnull(qty, 0) = 0
fffTTfff s nullif(qty, 0) IS NULL
fffTTfff s zeroifnull(qty) = 0
TTTNNffT s nullifzero(qty) > 1
TfffTfff s equal_null(city, 'Nice')
fTTNNffT s try_divide(price, qty) > 20
TfNffffT s try_add(age, 1) = 31
TfNffffT s try_subtract(age, 1) = 29
TfffNffT s try_multiply(qty, 2) = 10
TfNffffT s try_mod(age, 7) = 2
TTfTTTTT s try_cast(payload AS INT) IS NULL
TfNTTfTT s CAST(amount AS DOUBLE) > 10
TTTNNffT s price * qty > 100
fTTNNffT s price / qty >= 20
ffNTTfTT s amount > 10.5
TfNTTfTf s amount BETWEEN 1 AND 100.00
TfNfTfTT s age % 2 = 0
TfNfTfTT s mod(age, 2) = 0
TTffNffT s pmod(qty, 3) = 2
TffNfffT s abs(price - 100) < 20
TffNffff s round(price) = 90
TffNffff s floor(price) = 89
TffNffff s ceil(price) = 90
fTffffTf s greatest(age, qty) > 40
fTfTfTTf s least(age, qty) < 3
TffNTfTf s lower(city) = 'nice'
TfTfNTTf s upper(country) IN ('FR', 'ES')
TTTTNfTT s trim(name) <> ''
ffTTNfTf s length(name) > 3
TTffNffT s char_length(name) = 3
TTffNffT s len(name) = 3
TfTNffff s substring(email, 1, 3) = 'ann'
TfTNffff s substr(email, 1, 3) = 'ann'
fTfNffff s left(email, 3) = 'bob'
TfTNfffT s right(email, 4) = '.com'
TfTNfffT s split_part(email, '@', 2) = 'example.com'
TfTNfffT s substring_index(email, '@', -1) = 'example.com'
TffNNfff s concat(country, '-', city) = 'FR-Nice'
TffNNfff s country || '-' || city = 'FR-Nice'
Tfffffff s concat_ws('-', country, city) = 'FR-Nice'
TfTNfffT s regexp_extract(email, '@(.*)$', 1) = 'example.com'
fTffNfff s regexp_replace(name, '[aeiou]', '') = 'Bb'
TffNTfff s translate(city, 'i', 'y') = 'Nyce'
TfTNfffT s contains(email, 'example')
TfTNffff s startswith(email, 'ann')
fTfNffTf s endswith(email, '.org')
TffNTfff s replace(city, 'i', 'y') = 'Nyce'
TTNfTTTf s year(day) = 2024
TTNffffT s month(ts) = 1 AND day(ts) = 31
ffNTfTfT s dayofweek(day) IN (1, 7)
fTNfTfTf s hour(ts) >= 22
fTNfTfTf s extract(hour FROM ts) >= 22
TTNfTTTf s date_part('year', day) = 2024
TTNfTffT s date_trunc('month', ts) = TIMESTAMP '2024-01-01 00:00:00'
fTNffTTf s day >= '2024-02-01'
fTNffTTf s day >= DATE '2024-02-01'
TfNfTfff s day BETWEEN '2024-01-01' AND '2024-01-31'
TfNfffff s day = to_date('2024-01-31')
TfNNffTf s datediff(seen, day) > 5
TfNNffTf s datediff(DAY, day, seen) > 5
TfNNTfTf s date_diff(day, seen) < 0
fTNNTTfT s date_add(day, 3) > seen
TTNTfTfT s ts >= '2024-01-31 12:00:00'
fTNTfTfT s ts > TIMESTAMP '2024-01-31 12:00:00'
TffNfTTf s CASE WHEN vip THEN price < 500 ELSE price < 100 END
TfNTffff s CASE country WHEN 'FR' THEN age > 18 WHEN 'US' THEN age > 21 ELSE false END
TffNfTTf s if(vip, 500, 100) > price
TTTTfTTT s isnull(city) OR isnotnull(qty)
ffffTfff s isnan(price)
fffTffff s price <=> NULL
fTTTfTTT s city IS DISTINCT FROM 'Nice'
fffTffff s city IS NOT DISTINCT FROM NULL
TfNTTffT h age BETWEEN SYMMETRIC 34 AND 25
TfNffffT s age == 30
fTNTTTTf s age != 30
fTNTTTTf s NOT age = 30
fTNfTTfN s !vip
TfNTNffN s age > 18 AND age < 65 AND (country = 'FR' OR vip)
TfNTffTN s vip IN (true)
TNNNNNNT s age IN (30, NULL)
ffNTTTTf s age NOT IN (30, 41)
fffTffff s tags IS NULL
ffTfffff s tags IS NOT NULL AND size(tags) = 0
TfNTfffT h cidr_contains('10.0.0.0/8', ip)
TTNffffT s CAST(ts AS DATE) = '2024-01-31'
TfTfNfff s status IN ('paid', 'sent') AND price > 50
TfTTfTTT s status NOT IN ('void') AND status IS NOT NULL
TfNTfNff s user.id = 7
ffTTffff s user.tier IS NULL
TTffNfTf s name BETWEEN 'A' AND 'C'
fTTTNfTT s name >= 'B'
TffNTfff s city IN ('Nice')
TfTNffff s bit_count(flags) = 2
TfTNTTff h bitand(flags, 4) = 4
fTNfTfTf s 1 = 1 AND age > 30
TTNTNTTT s age > qty
fffNNfff s name = city
TTTTTTTT s true
TTfTTTTT s age IS NOT NULL;
fTNfTfTf h WHERE age > 30
fTNNTTfT s day + 3 > seen
fTNNTTfT s seen - 3 < day
TffNffff s tags = array('sport', 'news')
TffNffff s array_position(tags, 'news') = 2
TfNNTfNf s array_max(nums) > 5
TffNTTNf s exists(tags, t -> t LIKE 's%')
TffNNTNf s exists(items, x -> x.price > 10)
TffNNTNf s array_contains(items.sku, 'a')
ffNfffff s ts > current_timestamp() - INTERVAL 7 DAYS
TTNfTTTf s ts < day + INTERVAL 1 DAY
TTNNNNNN s get_json_object(payload, '$.a') = '1'
TTNNNNNN h payload:a = '1'
NNNNNNNN s get_json_object(payload, '$[*]') = '1'
TTNNNNNN s variant_get(try_parse_json(payload), '$.a', 'int') = 1
TTNNNNNN s try_parse_json(payload):a::string = '1'
NNTNNfNN s try_variant_get(try_parse_json(payload), '$', 'double') > 2
ffTTTTTT s try_parse_json(payload):a IS NULL
ffffffff s is_variant_null(try_parse_json(payload))
TTNffffT s to_date(ts) = '2024-01-31'
fTfTTffT s hash(id) % 2 = 0
"""
_TAKEN["duckdb"] = r"""
TTNTfTfT d epoch(ts) > 1706700000
TffNTTNf h list_contains(tags, 'sport')
TffNTTNf h list_has(tags, 'sport')
TTfNTTNf h list_has_any(tags, ['sport', 'news'])
TffNNfNf h list_has_all(tags, ['sport', 'news'])
TffNTTNf h tags && ['sport']
TffNTTNf h tags @> ['sport']
TTfNTTNf h list_has_any(tags, list_value('sport', 'news'))
TTfNTTNf h array_has_any(tags, array['sport', 'news'])
TffNNfNf h array_has_all(tags, array['sport', 'news'])
TffNTTNf h 'sport' IN tags
TffNTTNf h 'sport' = ANY(tags)
TffNTTNf h contains(tags, 'sport')
TffNTfff d len(tags) = 2
TffNTfff d array_length(tags) = 2
TTffNffT s len(name) = 3
TfTNffff d prefix(email, 'ann')
TfTNffff d starts_with(email, 'ann')
fTfNffTf d suffix(email, '.org')
fTfNffTf d ends_with(email, '.org')
TfTNffff d email ^@ 'ann'
TTTNffTT d regexp_matches(email, '^[a-z]+@')
TfffNfff d name ~~ 'A%'
fTTTNTTT d name !~~ 'A%'
TfTfNfff d name ~~* 'a%'
TTTNTfTT d strpos(email, '@') > 0
TTTNTfTT s position('@' IN email) > 0
TfNTTffT s age BETWEEN 25 AND 34
TfNfTfTT s age % 2 = 0
TffNffff d xor(flags, 1) = 4
TfTNTTff s flags & 4 <> 0
TffNffff s flags << 1 = 10
TTfTTTTT s try_cast(payload AS INTEGER) IS NULL
fTffNfff d name::VARCHAR = 'Bob'
fTNfTfTf s age::DOUBLE > 30
fffTTfff s ifnull(qty, 0) = 0
fffTffff s coalesce(city, 'none') = 'none'
TfNNffTf d date_diff('day', day, seen) > 5
TfNNffTf d datediff('day', day, seen) > 5
ffNfffff s date_part('dow', day) = 3
TTNfTTTf s year(day) = 2024
fNNNNTNN s tags[1] = 'sport'
TfNNNNfT s attrs['os'] = 'ios'
TfNNTffT s user.tier = 'gold'
TfffNfff d starts_with(name, 'A') AND age > 18
TTNffffT d age = ANY([30, 41])
TTNffffT d age IN [30, 41]
TTNffffT d age = ANY(ARRAY[30, 41])
TfTfNfff s name ILIKE '%ann%'
TfNfffff s day = '2024-01-31'::DATE
TfTTfTTT s nullif(status, 'void') IS NOT NULL
ffffTfff s isnan(price)
TfTNffff s bit_count(flags) = 2
fTTTfTTT s city IS DISTINCT FROM 'Nice'
fTffffTf s greatest(age, qty) > 40
Tfffffff d row(country, city) = row('FR', 'Nice')
TTffffff s (country, city) IN (('FR', 'Nice'), ('DE', 'Berlin'))
TTNNNNNN h json_extract_string(payload, '$.a') = '1'
TTNNNNNN h payload->>'a' = '1'
ffNfffff d ts > now() - INTERVAL 7 DAY
"""
_TAKEN["postgres"] = r"""
TTNTfTfT h extract(epoch from ts) > 1706700000
TfffNfff d name ~ '^A'
TfTfNfff d name ~* '^a'
fTTTNTTT d name !~ '^A'
fTfTNTTT d name !~* '^a'
TffNTTNf h tags @> ARRAY['sport']
TffNNfNf h tags @> ARRAY['sport', 'news']
TffNTTNf h ARRAY['sport'] <@ tags
TTfNTTNf h tags && ARRAY['sport', 'news']
TffNTTNf h 'sport' = ANY(tags)
TffNTfNf h 'sport' = ANY (tags) AND age > 18
fTTNffNT h 'sport' <> ALL(tags)
TTTfNTff d country = ANY(ARRAY['FR', 'DE'])
fffTNfTT d country <> ALL(ARRAY['FR', 'DE'])
TTNffffT d age = ANY(ARRAY[30, 41]::int[])
fTTNffNT h NOT ('sport' = ANY(tags))
TfNTTffT h age BETWEEN SYMMETRIC 34 AND 25
TfffTfff s city IS NOT DISTINCT FROM 'Nice'
TffTffTf s vip IS TRUE
TfNTffTN s vip = 't'
TffNfffN s vip = true AND active
TfNTffTN s vip::int = 1
TTTNTfTT s position('@' in email) > 0
TTTNTfTT d strpos(email, '@') > 0
TTffNffT s char_length(name) = 3
TfTNffff s substring(email from 1 for 3) = 'ann'
TfTNfffT s split_part(email, '@', 2) = 'example.com'
TfTNffff d starts_with(email, 'ann')
TffNTfff s cardinality(tags) = 2
fffTffff s coalesce(city, '') = ''
TfTfNfff s name ILIKE 'a%'
TTffNfTf h name LIKE ANY (ARRAY['A%', 'B%'])
TTTfNfTf h name ILIKE ANY (ARRAY['a%', 'b%'])
ffTfNffT h name LIKE ALL (ARRAY['%a%', '%n%'])
ffTTNTfT h name NOT LIKE ALL (ARRAY['A%', 'B%'])
TfTNTTff s flags & 4 = 4
ffNfffff s age ^ 2 = 900
ffNfffff s extract(dow from day) = 3
TTNffffT s date_trunc('day', ts) = '2024-01-31'
fTNffTTf s day >= '2024-02-01'::date
Tfffffff s (country, city) = ('FR', 'Nice')
TTffffff s (country, city) IN (('FR', 'Nice'), ('DE', 'Berlin'))
fffTffff d city ISNULL
TTTfTTTT d city NOTNULL
TfTNfffT s lower(email) LIKE '%@example.com'
NNTNNfNN s CAST(payload AS integer) > 1
TffNffff h array_position(tags, 'news') = 2
ffNfffff d ts > now() - interval '7 days'
"""
_TAKEN["bigquery"] = r"""
fTNffTTf h day >= DATE(2024, 2, 1)
TTTfNTff h country IN UNNEST(['FR', 'DE'])
fffTNfTT h country NOT IN UNNEST(['FR', 'DE'])
TffNTTNf h 'sport' IN UNNEST(tags)
fTTNffNT h 'sport' NOT IN UNNEST(tags)
TTNffffT h age IN UNNEST([30, 41])
TTTNffTT h REGEXP_CONTAINS(email, r'^[a-z]+@')
fTfNTTTf h NOT REGEXP_CONTAINS(email, r'example')
TfTNffff d STARTS_WITH(email, 'ann') AND ENDS_WITH(email, '.com')
TTTNTfTT d STRPOS(email, '@') > 0
TTfTTTTT h SAFE_CAST(payload AS INT64) IS NULL
NNTNNTNN h SAFE_CAST(payload AS FLOAT64) > 1
TfNffffT s CAST(age AS STRING) = '30'
fTTNNffT h SAFE_DIVIDE(price, qty) > 20
fffTTfff s IFNULL(qty, 0) = 0
TffNfTTf s IF(vip, 500, 100) > price
TfNNffTf h DATE_DIFF(seen, day, DAY) > 5
TTNfTTTf s EXTRACT(YEAR FROM day) = 2024
TfNfffff s EXTRACT(DAYOFWEEK FROM day) = 4
TffNTfff d ARRAY_LENGTH(tags) = 2
TfNNTfNf h tags[OFFSET(0)] = 'sport'
TfNNTfNf h tags[SAFE_OFFSET(0)] = 'sport'
TffNTfTf s LOWER(city) = 'nice'
TfTNfffT s REGEXP_EXTRACT(email, r'@(.*)$') = 'example.com'
TfNNTfff s user.tier = 'gold' AND user.score > 0.4
ffffTfff h IS_NAN(price)
fffTffff s COALESCE(city, 'none') = 'none'
TfTTfTTT s NULLIF(status, 'void') IS NOT NULL
TfNTTffT s age BETWEEN 25 AND 34
fTfTNfTT s country != 'FR'
TfNfffff s day = DATE '2024-01-31'
TTNTfTfT s ts >= TIMESTAMP('2024-01-31 12:00:00')
TTffffff s (country, city) IN (('FR', 'Nice'), ('DE', 'Berlin'))
TTffNfTf s name LIKE ANY ('A%', 'B%')
TfNfTfTT s MOD(age, 2) = 0
TfNfTffT s DIV(age, 10) = 3
TfTNffff s BIT_COUNT(flags) = 2
fTffffff s name IS NOT DISTINCT FROM 'Bob'
fTNNTTfT h DATE_ADD(day, INTERVAL 3 DAY) > seen
TTNTTTTT h TIMESTAMP_DIFF(ts, ts, HOUR) = 0
TTNNNNNN h JSON_VALUE(payload, '$.a') = '1'
ffNfffff h ts > TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)
"""
_TAKEN["snowflake"] = r"""
TTTffTTT h TRY_PARSE_JSON(payload) IS NOT NULL
TTNNNNNN h TRY_PARSE_JSON(payload):a::int = 1
TffNTTNf h ARRAY_CONTAINS('sport'::VARIANT, tags)
TTfNTTNf h ARRAYS_OVERLAP(tags, ARRAY_CONSTRUCT('sport', 'news'))
TfTNfffT s CONTAINS(email, 'example')
TfTNffff s STARTSWITH(email, 'ann')
fTfNffTf s ENDSWITH(email, '.org')
TTTNTfTT h CHARINDEX('@', email) > 0
TTTNTfTT s POSITION('@', email) > 0
TTTNTfTT s POSITION('@' IN email) > 0
TffNfTTf h IFF(vip, 500, 100) > price
fffTTfff s ZEROIFNULL(qty) = 0
TTTNNffT s NULLIFZERO(qty) > 1
fffTffff s NVL(city, '') = ''
fffTffff s NVL2(city, 1, 0) = 0
fTTNNffT h DIV0(price, qty) > 20
fffTTTff h DIV0NULL(price, qty) = 0
TfffTfff s EQUAL_NULL(city, 'Nice')
TfffTfff s city IS NOT DISTINCT FROM 'Nice'
TTfTTTTT s TRY_CAST(payload AS INT) IS NULL
TfNfffff s TO_DATE('2024-01-31') = day
fTNfTfTf s age::FLOAT > 30
TfTNTTff h BITAND(flags, 4) = 4
TffNTfff h BITOR(flags, 1) = 5
TffNffff h BITXOR(flags, 1) = 4
TffNffff h BITSHIFTLEFT(flags, 1) = 10
TfNNffTf s DATEDIFF(day, day, seen) > 5
TfNNffTf d DATEDIFF('day', day, seen) > 5
TTffNfTf s name LIKE ANY ('A%', 'B%')
ffTfNffT s name LIKE ALL ('%a%', '%n%')
TTTfNfTf s name ILIKE ANY ('a%', 'b%')
TTTTNTTT s name NOT ILIKE ANY ('a%', 'b%')
TfTNfffT s REGEXP_LIKE(email, '.*example.*')
TfTNfffT s RLIKE(email, '.*example.*')
TfTNfffT s email REGEXP '.*example.*'
TffNffff s REGEXP_SUBSTR(email, '[a-z]+') = 'ann'
TfTNffff s LEFT(email, 3) = 'ann'
TTffNffT s LEN(name) = 3
TfTNfffT s SPLIT_PART(email, '@', 2) = 'example.com'
TffNTfff s ARRAY_SIZE(tags) = 2
TfTffTff s DECODE(country, 'FR', 1, 'DE', 2, 0) = 1
fTNNfTTN h vip XOR active
fTNNfTTN h vip XOR active;
fTNNfTTN h WHERE vip XOR active
fTffffTf s GREATEST(age, qty) > 40
ffNfffff s DAYOFWEEK(day) = 3
TTNfTTTf s YEAR(day) = 2024
TfNTTffT s age BETWEEN 25 AND 34;
ffffNfff s status = 'paid' AND NOT vip
fTNNTTfT h DATEADD(day, 3, day) > seen
TTNNNNNN h payload:a::int = 1
ffNfffff h ts > DATEADD(day, -7, CURRENT_TIMESTAMP())
"""
TAKEN = [
    Taken(dialect, line[11:], line[9], line[:8])
    for dialect, block in _TAKEN.items()
    for line in block.strip().splitlines()
]
REFUSED = [
    Refused(
        "spark",
        "split(email, '@')[1] = 'example.com'",
        "split_part(name, ',', 1)",
        "split_part(email, '@', 2) = 'example.com'",
        "TfTNfffT",
    ),
    Refused("spark", "age IN (SELECT 30)", "list the values, as in a IN (1, 2)", "age IN (30)", "TfNffffT"),
    Refused(
        "duckdb",
        "regexp_full_match(city, '[A-Z].*e')",
        "name RLIKE '^(?s:...)$'",
        "city RLIKE '^(?s:[A-Z].*e)$'",
        "TffNTffT",
    ),
    Refused(
        "duckdb",
        "regexp_matches(email, 'EXAMPLE', 'i')",
        "write '(?i)...'",
        "regexp_matches(email, '(?i)EXAMPLE')",
        "TfTNfffT",
    ),
    Refused("duckdb", "name SIMILAR TO 'A.*'", "RLIKE '^(?s:A\\\\.*)$'", "name RLIKE '^(?s:A\\\\.*)$'", "ffffNfff"),
    Refused("duckdb", "name GLOB 'A*'", "write LIKE, with % and _", "name LIKE 'A%'", "TfffNfff"),
    Refused("duckdb", "age // 10 = 3", "a DIV b", "age DIV 10 = 3", "TfNfTffT"),
    Refused("duckdb", "qty ** 2 = 25", "pow(a, 2)", "pow(qty, 2) = 25", "TfffNfTT"),
    Refused(
        "duckdb",
        "strftime(day, '%Y-%m') = '2024-01'",
        "date_format(at, 'yyyy-MM')",
        "date_format(day, 'yyyy-MM') = '2024-01'",
        "TfNfTfff",
    ),
    Refused(
        "duckdb", "list_extract(tags, 1) = 'sport'", "element_at(tags, 1)", "element_at(tags, 1) = 'sport'", "TfNNTfNf"
    ),
    Refused("duckdb", "struct_extract(user, 'tier') = 'gold'", "user.tier", "user.tier = 'gold'", "TfNNTffT"),
    Refused("duckdb", "isfinite(price)", "abs(price) < double('inf')", "abs(price) < double('inf')", "TTTNfTTT"),
    Refused(
        "postgres", "name SIMILAR TO '(A|B)%'", "RLIKE '^(?s:(A|B).*)$'", "name RLIKE '^(?s:(A|B).*)$'", "TTffNfTf"
    ),
    Refused("postgres", "country = ANY('{FR,DE}')", "write a IN (1, 2)", "country IN ('FR', 'DE')", "TTTfNTff"),
    Refused("postgres", "array_length(tags, 1) = 2", "size(tags)", "size(tags) = 2", "TffNTfff"),
    Refused(
        "postgres",
        "ip::inet <<= '10.0.0.0/8'",
        "cidr_contains('10.0.0.0/8', ip)",
        "cidr_contains('10.0.0.0/8', ip)",
        "TfNTfffT",
    ),
    Refused("postgres", "flags # 1 = 4", "write ^", "flags ^ 1 = 4", "TffNffff"),
    Refused(
        "postgres",
        "to_char(day, 'YYYY-MM') = '2024-01'",
        "the letters are y M",
        "to_char(day, 'yyyy-MM') = '2024-01'",
        "TfNfTfff",
    ),
    Refused("postgres", "price::numeric > 50", "compare the value itself", "price > 50", "TTTNTffT"),
    Refused(
        "postgres",
        "(age, qty) > (30, 2)",
        "(a > 1 OR (a = 1 AND b > 2))",
        "(age > 30 OR (age = 30 AND qty > 2))",
        "TTNfTfTT",
    ),
    Refused("postgres", "attrs ? 'os'", "map_contains_key(attrs, 'os')", "map_contains_key(attrs, 'os')", "TTfNTfTT"),
    Refused("postgres", "attrs->>'os' = 'ios'", "attrs['key']", "attrs['os'] = 'ios'", "TfNNNNfT"),
    Refused("postgres", "age IN (VALUES (30), (41))", "a IN (1, 2)", "age IN (30, 41)", "TTNffffT"),
    Refused(
        "postgres",
        "num_nonnulls(city, qty) = 2",
        "if(a IS NULL, 0, 1) + if(b IS NULL, 0, 1)",
        "if(city IS NULL, 0, 1) + if(qty IS NULL, 0, 1) = 2",
        "TTTffTTT",
    ),
    Refused("postgres", "$1 < age", "write the value itself", "18 < age", "TTNTTfTT"),
    Refused("postgres", "age > :limit", "give :limit a value", "age > 18", "TTNTTfTT"),
    Refused(
        "bigquery",
        "FORMAT_DATE('%Y-%m', day) = '2024-01'",
        "date_format(at, 'yyyy-MM')",
        "date_format(day, 'yyyy-MM') = '2024-01'",
        "TfNfTfff",
    ),
    Refused(
        "bigquery",
        "EXISTS(SELECT 1 FROM UNNEST(tags) t WHERE t = 'sport')",
        "array_contains(tags, 'x')",
        "array_contains(tags, 'sport')",
        "TffNTTNf",
    ),
    Refused(
        "bigquery",
        "DATE_TRUNC(day, WEEK) = DATE '2024-01-28'",
        "date_trunc('week', day)",
        "date_trunc('week', day) = DATE '2024-01-29'",
        "TfNfffTf",
    ),
    Refused("bigquery", "IS_INF(price)", "abs(price) = double('inf')", "abs(price) = double('inf')", "fffNffff"),
    Refused(
        "bigquery",
        "CONTAINS_SUBSTR(email, 'EXAMPLE')",
        "contains(lower(name), 'x')",
        "contains(lower(email), 'example')",
        "TfTNfffT",
    ),
    Refused("bigquery", "IEEE_DIVIDE(price, qty) > 20", "try_divide(a, b)", "try_divide(price, qty) > 20", "fTTNNffT"),
    Refused(
        "bigquery",
        "NET.IP_FROM_STRING(ip) IS NOT NULL",
        "cidr_contains(",
        "cidr_contains('0.0.0.0/0', ip) OR cidr_contains('::/0', ip)",
        "TTNTTTTT",
    ),
    Refused("bigquery", "age > @limit", "write the value itself", "age > 18", "TTNTTfTT"),
    Refused(
        "snowflake",
        "TRY_TO_NUMBER(payload) IS NULL",
        "TRY_CAST(name AS DOUBLE)",
        "TRY_CAST(payload AS DOUBLE) IS NULL",
        "TTfTTfTT",
    ),
    Refused("snowflake", "user:tier::string = 'gold'", "write user.tier", "user.tier::string = 'gold'", "TfNNTffT"),
    Refused("snowflake", "BOOLAND(vip, active)", "a AND b", "vip AND active", "TffNfffN"),
    Refused("snowflake", "BOOLXOR(vip, active)", "a XOR b", "vip XOR active", "fTNNfTTN"),
    Refused("snowflake", "COLLATE(name, 'en-ci') = 'bob'", "lower(name) = 'x'", "lower(name) = 'bob'", "fTffNfff"),
    Refused(
        "snowflake",
        "TO_BOOLEAN(status) = true",
        "TRY_CAST(name AS BOOLEAN)",
        "TRY_CAST(status AS BOOLEAN) = true",
        "NNNTNfNT",
    ),
    Refused(
        "snowflake",
        "PARSE_IP(ip, 'inet') IS NOT NULL",
        "cidr_contains(",
        "cidr_contains('0.0.0.0/0', ip) OR cidr_contains('::/0', ip)",
        "TTNTTTTT",
    ),
    Refused(
        "duckdb",
        "list_position(tags, 'news') = 2",
        "array_position(tags, 'x')",
        "array_position(tags, 'news') = 2",
        "TffNffff",
    ),
    Refused(
        "duckdb",
        "list_filter(tags, x -> x = 'a') = []",
        "size(filter(...))",
        "size(filter(tags, x -> x = 'a')) = 0",
        "TTTNTTTT",
    ),
    Refused("postgres", "seen - day > 5", "INTERVAL 7 DAYS", "seen - day > INTERVAL 5 DAYS", "TfNNffTf"),
    Refused(
        "postgres",
        "seen::date - day::date > 5",
        "INTERVAL 7 DAYS",
        "seen::date - day::date > INTERVAL 5 DAYS",
        "TfNNffTf",
    ),
    Refused(
        "postgres", "payload::json->>'a' = '1'", "get_json_object(", "get_json_object(payload, '$.a') = '1'", "TTNNNNNN"
    ),
]
LATER = [
    ("duckdb", "date_sub('day', day, seen) > 5"),
    ("duckdb", "list_any_value(nums) > 0"),
    ("bigquery", "FARM_FINGERPRINT(name) > 0"),
]
