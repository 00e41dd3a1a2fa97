//! The tables and the 13 queries of the Star Schema Benchmark (O'Neil, O'Neil, Chen, revision 3), whose table DATE is `dates` here, as
//! in Doris.

use crate::suites::TableOf;

/// The tables.
pub const TABLES: [TableOf; 5] = [
    TableOf {
        name: "dates",
        columns: "d_datekey INT NOT NULL, d_date VARCHAR(18) NOT NULL, d_dayofweek VARCHAR(9) NOT NULL, \
d_month VARCHAR(9) NOT NULL, d_year INT NOT NULL, d_yearmonthnum INT NOT NULL, d_yearmonth VARCHAR(7) NOT NULL, \
d_daynuminweek INT NOT NULL, d_daynuminmonth INT NOT NULL, d_daynuminyear INT NOT NULL, \
d_monthnuminyear INT NOT NULL, d_weeknuminyear INT NOT NULL, d_sellingseason VARCHAR(12) NOT NULL, \
d_lastdayinweekfl INT NOT NULL, d_lastdayinmonthfl INT NOT NULL, d_holidayfl INT NOT NULL, d_weekdayfl INT NOT NULL",
        key: "d_datekey",
    },
    TableOf {
        name: "customer",
        columns: "c_custkey INT NOT NULL, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, \
c_city VARCHAR(10) NOT NULL, c_nation VARCHAR(15) NOT NULL, c_region VARCHAR(12) NOT NULL, \
c_phone VARCHAR(15) NOT NULL, c_mktsegment VARCHAR(10) NOT NULL",
        key: "c_custkey",
    },
    TableOf {
        name: "supplier",
        columns: "s_suppkey INT NOT NULL, s_name VARCHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, \
s_city VARCHAR(10) NOT NULL, s_nation VARCHAR(15) NOT NULL, s_region VARCHAR(12) NOT NULL, s_phone VARCHAR(15) NOT NULL",
        key: "s_suppkey",
    },
    TableOf {
        name: "part",
        columns: "p_partkey INT NOT NULL, p_name VARCHAR(55) NOT NULL, p_mfgr VARCHAR(6) NOT NULL, \
p_category VARCHAR(7) NOT NULL, p_brand VARCHAR(9) NOT NULL, p_color VARCHAR(11) NOT NULL, p_type VARCHAR(25) NOT NULL, \
p_size INT NOT NULL, p_container VARCHAR(10) NOT NULL",
        key: "p_partkey",
    },
    TableOf {
        name: "lineorder",
        columns: "lo_orderkey BIGINT NOT NULL, lo_linenumber INT NOT NULL, lo_custkey INT NOT NULL, lo_partkey INT NOT NULL, \
lo_suppkey INT NOT NULL, lo_orderdate INT NOT NULL, lo_orderpriority VARCHAR(15) NOT NULL, lo_shippriority INT NOT NULL, \
lo_quantity INT NOT NULL, lo_extendedprice INT NOT NULL, lo_ordtotalprice INT NOT NULL, lo_discount INT NOT NULL, \
lo_revenue INT NOT NULL, lo_supplycost INT NOT NULL, lo_tax INT NOT NULL, lo_commitdate INT NOT NULL, \
lo_shipmode VARCHAR(10) NOT NULL",
        key: "lo_orderkey",
    },
];

/// The queries by their names: flights of three or four, each of which asks for fewer rows than the one before.
pub const QUERIES: [(&str, &str); 13] = [
    (
        "Q1.1",
        "select sum(lo_extendedprice * lo_discount) as revenue from lineorder, dates where lo_orderdate = d_datekey and d_year = 1993 \
and lo_discount between 1 and 3 and lo_quantity < 25",
    ),
    (
        "Q1.2",
        "select sum(lo_extendedprice * lo_discount) as revenue from lineorder, dates where lo_orderdate = d_datekey and \
d_yearmonthnum = 199401 and lo_discount between 4 and 6 and lo_quantity between 26 and 35",
    ),
    (
        "Q1.3",
        "select sum(lo_extendedprice * lo_discount) as revenue from lineorder, dates where lo_orderdate = d_datekey and \
d_weeknuminyear = 6 and d_year = 1994 and lo_discount between 5 and 7 and lo_quantity between 26 and 35",
    ),
    (
        "Q2.1",
        "select sum(lo_revenue) as revenue, d_year, p_brand from lineorder, dates, part, supplier where lo_orderdate = d_datekey and \
lo_partkey = p_partkey and lo_suppkey = s_suppkey and p_category = 'MFGR#12' and s_region = 'AMERICA' group by d_year, p_brand \
order by d_year, p_brand",
    ),
    (
        "Q2.2",
        "select sum(lo_revenue) as revenue, d_year, p_brand from lineorder, dates, part, supplier where lo_orderdate = d_datekey and \
lo_partkey = p_partkey and lo_suppkey = s_suppkey and p_brand between 'MFGR#2221' and 'MFGR#2228' and s_region = 'ASIA' \
group by d_year, p_brand order by d_year, p_brand",
    ),
    (
        "Q2.3",
        "select sum(lo_revenue) as revenue, d_year, p_brand from lineorder, dates, part, supplier where lo_orderdate = d_datekey and \
lo_partkey = p_partkey and lo_suppkey = s_suppkey and p_brand = 'MFGR#2239' and s_region = 'EUROPE' group by d_year, p_brand \
order by d_year, p_brand",
    ),
    (
        "Q3.1",
        "select c_nation, s_nation, d_year, sum(lo_revenue) as revenue from customer, lineorder, supplier, dates where lo_custkey = \
c_custkey and lo_suppkey = s_suppkey and lo_orderdate = d_datekey and c_region = 'ASIA' and s_region = 'ASIA' and d_year >= 1992 \
and d_year <= 1997 group by c_nation, s_nation, d_year order by d_year, revenue desc",
    ),
    (
        "Q3.2",
        "select c_city, s_city, d_year, sum(lo_revenue) as revenue from customer, lineorder, supplier, dates where lo_custkey = \
c_custkey and lo_suppkey = s_suppkey and lo_orderdate = d_datekey and c_nation = 'UNITED STATES' and s_nation = 'UNITED STATES' \
and d_year >= 1992 and d_year <= 1997 group by c_city, s_city, d_year order by d_year, revenue desc",
    ),
    (
        "Q3.3",
        "select c_city, s_city, d_year, sum(lo_revenue) as revenue from customer, lineorder, supplier, dates where lo_custkey = \
c_custkey and lo_suppkey = s_suppkey and lo_orderdate = d_datekey and (c_city = 'UNITED KI1' or c_city = 'UNITED KI5') and \
(s_city = 'UNITED KI1' or s_city = 'UNITED KI5') and d_year >= 1992 and d_year <= 1997 group by c_city, s_city, d_year order by \
d_year, revenue desc",
    ),
    (
        "Q3.4",
        "select c_city, s_city, d_year, sum(lo_revenue) as revenue from customer, lineorder, supplier, dates where lo_custkey = \
c_custkey and lo_suppkey = s_suppkey and lo_orderdate = d_datekey and (c_city = 'UNITED KI1' or c_city = 'UNITED KI5') and \
(s_city = 'UNITED KI1' or s_city = 'UNITED KI5') and d_yearmonth = 'Dec1997' group by c_city, s_city, d_year order by d_year, \
revenue desc",
    ),
    (
        "Q4.1",
        "select d_year, c_nation, sum(lo_revenue - lo_supplycost) as profit from dates, customer, supplier, part, lineorder where \
lo_custkey = c_custkey and lo_suppkey = s_suppkey and lo_partkey = p_partkey and lo_orderdate = d_datekey and c_region = \
'AMERICA' and s_region = 'AMERICA' and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2') group by d_year, c_nation order by d_year, \
c_nation",
    ),
    (
        "Q4.2",
        "select d_year, s_nation, p_category, sum(lo_revenue - lo_supplycost) as profit from dates, customer, supplier, part, \
lineorder where lo_custkey = c_custkey and lo_suppkey = s_suppkey and lo_partkey = p_partkey and lo_orderdate = d_datekey and \
c_region = 'AMERICA' and s_region = 'AMERICA' and (d_year = 1997 or d_year = 1998) and (p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2') \
group by d_year, s_nation, p_category order by d_year, s_nation, p_category",
    ),
    (
        "Q4.3",
        "select d_year, s_city, p_brand, sum(lo_revenue - lo_supplycost) as profit from dates, customer, supplier, part, lineorder \
where lo_custkey = c_custkey and lo_suppkey = s_suppkey and lo_partkey = p_partkey and lo_orderdate = d_datekey and c_region = \
'AMERICA' and s_nation = 'UNITED STATES' and (d_year = 1997 or d_year = 1998) and p_category = 'MFGR#14' group by d_year, s_city, \
p_brand order by d_year, s_city, p_brand",
    ),
];
