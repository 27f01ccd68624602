//! What is measured. Names in braces are values of any size (`large.rs`); the bytes of one are
//! `{bytes}`, the rows `{rows}`.

/// How large values are.
#[derive(Clone, Copy)]
pub(crate) enum Scale {
    /// Large.
    Linear,
    /// Less so, where time grows with the square of it.
    Square,
}

/// An expression that is computed for some rows, or a query.
pub(crate) struct Case {
    pub(crate) text: &'static str,
    pub(crate) scale: Scale,
}

impl Case {
    /// Whether it is an expression.
    pub(crate) fn is_call(&self) -> bool {
        !self.text.starts_with("SELECT") && !self.text.starts_with("WITH")
    }

    /// Bytes of values, and rows: small and large.
    pub(crate) fn sizes(&self) -> [(usize, usize); 2] {
        let large = match self.scale {
            Scale::Linear => 200_000,
            Scale::Square => 20_000,
        };
        [(8, 500), (large, 4)]
    }
}

const fn linear(text: &'static str) -> Case {
    Case { text, scale: Scale::Linear }
}

const fn square(text: &'static str) -> Case {
    Case { text, scale: Scale::Square }
}

/// Expressions.
pub(crate) const CALLS: &[Case] = &[
    linear("i + 1"),
    linear("i - 1"),
    linear("i * 2 / 3 % 5"),
    linear("-i & 5 | 3 # 1"),
    linear("~i << 2 >> 1"),
    linear("{digits} + i"),
    linear("{digits} - i"),
    linear("-{digits}"),
    square("{fraction} * 7"),
    square("left({digits_string}, 490)::numeric * left({digits_string}, 490)::numeric"),
    square("{fraction} * {fraction}"),
    square("{fraction} / {fraction}"),
    square("1 / {digits}"),
    square("{digits} % 77777777777"),
    square("{fraction} % 0.0000007"),
    square("div({digits}, 77777777777)"),
    square("power({fraction}::numeric(40, 30), 30)"),
    square("power({fraction}, 2)"),
    square("power({fraction}::numeric(100, 99), 3)"),
    square("power(7::numeric, 1000)"),
    square("sqrt({digits})"),
    square("sqrt({fraction})"),
    square("abs({digits})"),
    square("sign({digits})"),
    square("floor({fraction})"),
    square("ceil({fraction})"),
    square("round({fraction})"),
    square("round({fraction}, 500)"),
    square("round({digits}, -500)"),
    square("trunc({fraction}, 700)"),
    square("to_char({fraction}, repeat('9', 100) || '.' || repeat('9', 500))"),
    square("{digits}::text"),
    square("{fraction}::float8"),
    square("{fraction}::numeric(100, 50)"),
    linear("{words} = {words}"),
    linear("{words} <> {words}"),
    linear("{words} < {words}"),
    linear("{words} <= {words}"),
    linear("{words} > {words}"),
    linear("{words} >= {words}"),
    linear("{words} IS DISTINCT FROM {words}"),
    linear("{words} IN ({words}, {lower})"),
    linear("NOT (i > 1 AND i < 5 OR i = 7)"),
    linear("i IS NULL"),
    linear("{words} IS NOT NULL"),
    linear("(i > 1) IS TRUE"),
    linear("(i > 1) IS FALSE"),
    linear("{words} || {words}"),
    linear("{bytes_string}::bytea || {bytes_string}::bytea"),
    linear("{words} LIKE '%zz%'"),
    linear("{words} ILIKE '%zz%'"),
    square("{same} LIKE '%' || {behind}"),
    square("{same} ILIKE '%' || {behind} || '%'"),
    square("{same} LIKE {percents} || 'b'"),
    linear("{words} LIKE {words} ESCAPE '!'"),
    linear("length({words})"),
    linear("length({bytes_string}::bytea)"),
    linear("octet_length({words})"),
    linear("bit_length({words})"),
    linear("lower({words})"),
    linear("upper({words})"),
    linear("btrim({blanks})"),
    square("btrim({letters}, reverse({letters}))"),
    square("ltrim({letters}, {letters})"),
    square("rtrim({letters}, {letters})"),
    linear("substr({words}, {bytes} / 2)"),
    linear("position('zz' in {words})"),
    square("strpos({same}, {behind})"),
    linear("replace({same}, 'a', 'bc')"),
    linear("replace({words}, {words}, 'b')"),
    linear("left({words}, {bytes} / 2)"),
    linear("right({words}, {bytes} / 2)"),
    linear("repeat('ab', {bytes})"),
    linear("length(repeat({words}, 50))"),
    linear("reverse({words})"),
    linear("concat({words}, i, {ints})"),
    linear("greatest({words}, {lower})"),
    linear("least({words}, {lower})"),
    linear("nullif({words}, {lower})"),
    linear("now()"),
    linear("extract(hour from now())"),
    linear("extract(day from interval '3 days')"),
    linear("date_trunc('hour', now())"),
    linear("date_trunc('month', now(), 'Europe/Berlin')"),
    linear("now() at time zone 'America/New_York'"),
    linear("split_part({list}, ',', 1000)"),
    linear("split_part({list}, ',', -1000)"),
    linear("lpad('x', {bytes}, 'ab')"),
    linear("lpad('x', {bytes})"),
    linear("rpad('x', {bytes}, {words})"),
    linear("initcap({words})"),
    linear("concat_ws({words}, i, {words}, 'a')"),
    linear("chr(65)"),
    linear("ascii({words})"),
    linear("translate({words}, 'abc', 'xyz')"),
    square("translate({letters}, {letters}, reverse({letters}))"),
    linear("overlay({words} placing {words} from 5)"),
    linear("starts_with({words}, {words})"),
    linear("to_hex(i)"),
    linear("string_to_array({list}, ',')"),
    linear("string_to_array({words}, NULL)"),
    linear("array_to_string({ints}, ',')"),
    linear("array_to_string({texts}, ',')"),
    linear("({ints})[3]"),
    linear("i = ANY({ints})"),
    linear("'x' = ANY({texts})"),
    linear("array_upper({ints}, 1) + array_lower({ints}, 1) + array_length({ints}, 1)"),
    linear("cardinality({ints})"),
    linear("array_position({texts}, 'x')"),
    linear("{ints} || {ints}"),
    linear("array_append({ints}, 1)"),
    linear("array_prepend('a', {texts})"),
    linear("array_remove({texts}, 'item 7')"),
    square("{ints} @> {ints}"),
    square("{texts} <@ {texts}"),
    square("{texts} && ARRAY[{same}]"),
    linear("ARRAY[{words}, {words}]"),
    linear("{texts} < {texts}"),
    linear("{ints}::text"),
    linear("{ints}::float8[]"),
    linear("{texts}::text"),
    linear("{array_string}::int[]"),
    linear("{array_string}::numeric[]"),
    linear("enum_range((CASE WHEN i > 1 THEN 'sad' ELSE 'ok' END)::mood, NULL)"),
    linear("age(now(), now() - interval '1000 days')"),
    linear("make_date(2000 + i % 9, 1, 1)"),
    linear("make_time(3, 4, 5)"),
    linear("make_timestamp(2000, 1, 2, 3, 4, 5)"),
    linear("date_bin('15 minutes', now(), '2001-01-01')"),
    linear("isfinite(now())"),
    linear("to_timestamp(i)"),
    linear("to_char(now(), 'YYYY-MM-DD HH24:MI:SS')"),
    linear("to_char(now(), repeat('Month ', least({bytes} / 100, 1500)::int))"),
    linear("interval '1 day' * i"),
    linear("interval '1 day' / i"),
    linear("'2001-02-03 04:05:06'::timestamp + i * interval '1 minute'"),
    linear("(i || ' days')::interval"),
    linear("('2001-01-0' || 1 + i % 9)::date"),
    linear("to_jsonb({words})"),
    linear("to_jsonb({ints})"),
    linear("to_jsonb({texts})"),
    linear("to_json({ints})"),
    linear("to_json({texts})"),
    linear("jsonb_build_object({words}, {words}, 'b', {numbers})"),
    linear("jsonb_build_array({words}, {numbers}, {texts})"),
    linear("json_build_object({words}, {words}, 'b', {numbers})"),
    linear("json_build_array({words}, {numbers}, {texts})"),
    linear("{object} -> 'key 7'"),
    linear("{object} ->> 'key 7'"),
    linear("{json_text} -> 7"),
    linear("{json_text} ->> 7"),
    linear("{deep} #> {path}"),
    linear("{deep} #>> {path}"),
    linear("{deep} #>> ARRAY['a', 'a']"),
    linear("{json_text} #> ARRAY['1', 'a']"),
    square("{numbers} @> {numbers}"),
    square("{strings} @> {strings}"),
    linear("{object} @> {object}"),
    linear("{object} ? 'key 7'"),
    linear("{strings} ? 'x'"),
    square("{strings} ?| {texts}"),
    square("{strings} ?& {texts}"),
    linear("{object} || {object}"),
    linear("{numbers} || {numbers}"),
    linear("{object} - 'key 7'"),
    linear("{object} - {texts}"),
    linear("{numbers} - 7"),
    linear("{deep} #- {path}"),
    linear("jsonb_set({deep}, {path}, {object})"),
    linear("jsonb_set({object}, ARRAY['new'], {object})"),
    linear("jsonb_typeof({object})"),
    linear("jsonb_array_length({numbers})"),
    linear("jsonb_strip_nulls({object})"),
    linear("{object} = {object}"),
    linear("{numbers}::text"),
    linear("{object}::text"),
    linear("{json_string}::jsonb"),
    linear("{json_string}::json"),
    linear("{json_text}::jsonb"),
    linear("{bytes_string}::bytea"),
    linear("{bytes}::text"),
    linear("{words}::varchar(10)"),
    linear("{words}::char(10)"),
    linear("{words}::char(100000)"),
    linear("{digits_string}::numeric"),
    linear("CASE WHEN {words} = {lower} THEN {words} ELSE {lower} END"),
    linear("coalesce({words}, 'x')"),
    linear("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid"),
    linear("1.5::float8 * i"),
    linear("sqrt(i::float8)"),
];

/// Queries.
pub(crate) const QUERIES: &[Case] = &[
    linear("SELECT i FROM generate_series(1, {rows} * 100) AS g(i) ORDER BY i DESC"),
    linear("SELECT {words} || i AS t FROM generate_series(1, {rows} * 20) AS g(i) ORDER BY t DESC"),
    linear(
        "SELECT {words} || i AS t FROM generate_series(1, {rows} * 20) AS g(i) ORDER BY t LIMIT 3",
    ),
    linear("SELECT DISTINCT {words} || i AS t FROM generate_series(1, {rows} * 20) AS g(i)"),
    linear("SELECT DISTINCT {object} AS t FROM generate_series(1, {rows}) AS g(i)"),
    linear(
        "SELECT {words} || i AS t, count(*) FROM generate_series(1, {rows} * 9) AS g(i) GROUP BY t",
    ),
    linear("SELECT {object} AS t, count(*) FROM generate_series(1, {rows} * 9) AS g(i) GROUP BY t"),
    linear("SELECT count(DISTINCT {words} || i) FROM generate_series(1, {rows} * 9) AS g(i)"),
    linear("SELECT {words} || i FROM generate_series(1, {rows} * 9) AS g(i) UNION SELECT {words}"),
    linear("SELECT {words} || i FROM generate_series(1, {rows} * 9) AS g(i) EXCEPT SELECT {words}"),
    linear(
        "SELECT {words} || i FROM generate_series(1, {rows} * 9) AS g(i) INTERSECT SELECT {words}",
    ),
    linear(
        "SELECT {words} || i FROM generate_series(1, {rows} * 9) AS g(i) UNION ALL SELECT {words}",
    ),
    linear(
        "SELECT count(*) FROM (SELECT {words} || i AS t FROM generate_series(1, {rows} * 3) AS \
         g(i)) a \
         JOIN (SELECT {words} || i AS t FROM generate_series(1, {rows} * 3) AS g(i)) b ON a.t = \
         b.t",
    ),
    linear(
        "SELECT count(*) FROM (SELECT {words} || i AS t FROM generate_series(1, 20) AS g(i)) a, \
         (SELECT {words} || i AS t FROM generate_series(1, {rows}) AS g(i)) b",
    ),
    linear(
        "SELECT count(*) FROM (SELECT {words} || i AS t FROM generate_series(1, 20) AS g(i)) a, \
         (SELECT {words} || i AS t FROM generate_series(1, {rows}) AS g(i)) b WHERE a.t < b.t",
    ),
    linear(
        "SELECT (SELECT count(*) FROM generate_series(1, 2) WHERE a.t IS NULL) \
         FROM (SELECT {words} || i AS t FROM generate_series(1, {rows} * 3) AS g(i)) a",
    ),
    linear(
        "SELECT ARRAY(SELECT {words} || i FROM generate_series(1, {rows}) AS g(i)) FROM \
         generate_series(1, 3)",
    ),
    linear(
        "SELECT count(*) FROM generate_series(1, {rows}) AS g(i) WHERE {words} || i IN \
         (SELECT {words} || i FROM generate_series(1, 20) AS g(i))",
    ),
    linear(
        "SELECT count(*) FROM generate_series(1, {rows}) AS g(i) WHERE {words} < ALL \
         (SELECT {words} || i FROM generate_series(1, 5) AS g(i))",
    ),
    linear(
        "WITH RECURSIVE r(n, t) AS (SELECT 1, {words} UNION SELECT n + 1, t FROM r WHERE n < \
         {rows}) \
         SELECT count(*) FROM r",
    ),
    linear("SELECT string_agg({words}, {words}) FROM generate_series(1, {rows}) AS g(i)"),
    linear(
        "SELECT string_agg({words} || i, ',' ORDER BY {words} || -i) FROM generate_series(1, \
         {rows}) AS g(i)",
    ),
    linear("SELECT array_agg({words}) FROM generate_series(1, {rows}) AS g(i)"),
    linear("SELECT jsonb_agg({texts}) FROM generate_series(1, {rows}) AS g(i)"),
    linear("SELECT json_agg({texts}) FROM generate_series(1, {rows}) AS g(i)"),
    linear("SELECT json_agg({object}) FROM generate_series(1, {rows}) AS g(i)"),
    linear(
        "SELECT jsonb_object_agg({words} || i, {numbers}) FROM generate_series(1, {rows}) AS g(i)",
    ),
    linear(
        "SELECT json_object_agg({words} || i, {numbers}) FROM generate_series(1, {rows}) AS g(i)",
    ),
    linear(
        "SELECT min({words} || i), max({words} || i) FROM generate_series(1, {rows} * 9) AS g(i)",
    ),
    linear("SELECT sum({digits}), avg({fraction}) FROM generate_series(1, {rows} * 9) AS g(i)"),
    linear("SELECT sum(i), avg(i), count(i) FROM generate_series(1, {rows} * 9) AS g(i)"),
    linear("SELECT bool_and(i > 3), bool_or(i > 3) FROM generate_series(1, {rows} * 9) AS g(i)"),
    linear(
        "SELECT row_number() OVER (PARTITION BY {words} || i % 3 ORDER BY {words} || i) FROM \
         generate_series(1, {rows} * 9) AS g(i)",
    ),
    linear(
        "SELECT lag({words} || i) OVER (ORDER BY i), rank() OVER (ORDER BY i) FROM \
         generate_series(1, {rows} * 9) AS g(i)",
    ),
    linear(
        "SELECT first_value({words} || i) OVER (ORDER BY i) FROM generate_series(1, {rows} * 9) \
         AS g(i)",
    ),
    linear(
        "SELECT max({words} || i) OVER (ORDER BY i ROWS 3 PRECEDING) FROM generate_series(1, \
         {rows} * 9) AS g(i)",
    ),
    linear(
        "SELECT string_agg({words}, '') OVER (ORDER BY i) FROM generate_series(1, {rows} / 4 + \
         5) AS g(i)",
    ),
    linear(
        "SELECT sum(i) OVER (ORDER BY i ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) FROM \
         generate_series(1, {rows} * 9) AS g(i)",
    ),
    linear("SELECT unnest FROM unnest({texts})"),
    linear("SELECT i FROM generate_subscripts({ints}, 1) AS g(i)"),
    linear("SELECT * FROM jsonb_array_elements({numbers})"),
    linear("SELECT * FROM jsonb_array_elements_text({strings})"),
    linear("SELECT * FROM jsonb_object_keys({object})"),
    linear("SELECT * FROM jsonb_each({object})"),
    linear("SELECT * FROM jsonb_each_text({object})"),
    linear("SELECT count(*) FROM generate_series('2001-01-01'::timestamp, '2001-03-01', '1 hour')"),
    linear("SELECT count(*) FROM generate_series(now(), now() + interval '30 days', '1 hour')"),
    linear(
        "SELECT count(row_to_json(a)) FROM (SELECT {words} || i AS t, {object} AS o FROM \
         generate_series(1, {rows}) AS g(i)) a",
    ),
];

/// Queries with functions that no call has.
pub(crate) const OUTSIDE: &[Case] = &[
    linear("{words} ~ 'zz+'"),
    linear("{words} ~* '(zz|y)+'"),
    linear("regexp_replace({words}, 'z+(c)', '\\1\\1', 'g')"),
    linear("regexp_match({words}, 'zz+')"),
    linear("quote_ident({words})"),
    linear("quote_literal({words})"),
    linear("SELECT count(*) FROM regexp_matches({words}, 'z+(c)', 'g')"),
];
