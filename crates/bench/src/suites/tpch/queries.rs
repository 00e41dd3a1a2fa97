//! The tables and the 22 queries of TPC-H, with the parameters of the validation run (TPC-H specification, revision 3.0.1, section 2.4),
//! as MySQL, DuckDB and DataFusion all read them: intervals are added up, and the view of query 15 is a `WITH`.

use crate::suites::TableOf;

/// The tables.
pub const TABLES: [TableOf; 8] = [
    TableOf {
        name: "region",
        columns: "r_regionkey INT NOT NULL, r_name VARCHAR(25) NOT NULL, r_comment VARCHAR(152)",
        key: "r_regionkey",
    },
    TableOf {
        name: "nation",
        columns: "n_nationkey INT NOT NULL, n_name VARCHAR(25) NOT NULL, n_regionkey INT NOT NULL, \
n_comment VARCHAR(152)",
        key: "n_nationkey",
    },
    TableOf {
        name: "part",
        columns: "p_partkey INT NOT NULL, p_name VARCHAR(55) NOT NULL, p_mfgr VARCHAR(25) NOT NULL, \
p_brand VARCHAR(10) NOT NULL, p_type VARCHAR(25) NOT NULL, p_size INT NOT NULL, \
p_container VARCHAR(10) NOT NULL, p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR(23) NOT NULL",
        key: "p_partkey",
    },
    TableOf {
        name: "supplier",
        columns: "s_suppkey INT NOT NULL, s_name VARCHAR(25) NOT NULL, s_address VARCHAR(40) NOT NULL, \
s_nationkey INT NOT NULL, s_phone VARCHAR(15) NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, \
s_comment VARCHAR(101) NOT NULL",
        key: "s_suppkey",
    },
    TableOf {
        name: "partsupp",
        columns: "ps_partkey INT NOT NULL, ps_suppkey INT NOT NULL, ps_availqty INT NOT NULL, \
ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR(199) NOT NULL",
        key: "ps_partkey",
    },
    TableOf {
        name: "customer",
        columns: "c_custkey INT NOT NULL, c_name VARCHAR(25) NOT NULL, c_address VARCHAR(40) NOT NULL, \
c_nationkey INT NOT NULL, c_phone VARCHAR(15) NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, \
c_mktsegment VARCHAR(10) NOT NULL, c_comment VARCHAR(117) NOT NULL",
        key: "c_custkey",
    },
    TableOf {
        name: "orders",
        columns: "o_orderkey BIGINT NOT NULL, o_custkey INT NOT NULL, o_orderstatus VARCHAR(1) NOT NULL, \
o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority VARCHAR(15) NOT NULL, \
o_clerk VARCHAR(15) NOT NULL, o_shippriority INT NOT NULL, o_comment VARCHAR(79) NOT NULL",
        key: "o_orderkey",
    },
    TableOf {
        name: "lineitem",
        columns: "l_orderkey BIGINT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, \
l_linenumber INT NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, \
l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL, l_returnflag VARCHAR(1) NOT NULL, \
l_linestatus VARCHAR(1) NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL, \
l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR(25) NOT NULL, l_shipmode VARCHAR(10) NOT NULL, \
l_comment VARCHAR(44) NOT NULL",
        key: "l_orderkey",
    },
];

/// The queries, number 1 first.
pub const QUERIES: [&str; 22] = [
    include_str!("queries/01.sql"),
    include_str!("queries/02.sql"),
    include_str!("queries/03.sql"),
    include_str!("queries/04.sql"),
    include_str!("queries/05.sql"),
    include_str!("queries/06.sql"),
    include_str!("queries/07.sql"),
    include_str!("queries/08.sql"),
    include_str!("queries/09.sql"),
    include_str!("queries/10.sql"),
    include_str!("queries/11.sql"),
    include_str!("queries/12.sql"),
    include_str!("queries/13.sql"),
    include_str!("queries/14.sql"),
    include_str!("queries/15.sql"),
    include_str!("queries/16.sql"),
    include_str!("queries/17.sql"),
    include_str!("queries/18.sql"),
    include_str!("queries/19.sql"),
    include_str!("queries/20.sql"),
    include_str!("queries/21.sql"),
    include_str!("queries/22.sql"),
];
