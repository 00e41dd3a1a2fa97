//! The tables in each server's SQL. No server has an index that its tables can do without.

use crate::load::Table;
use crate::peer::Peer;

impl Table {
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Lineitem => "lineitem",
            Self::AccessLog => "access_log",
            Self::Keyed => "keyed",
        }
    }

    /// The columns, in types that MariaDB, PostgreSQL and Tributary share.
    fn columns(self) -> &'static str {
        match self {
            Self::Small | Self::Keyed => "id BIGINT NOT NULL, name VARCHAR(50), score INT",
            Self::Lineitem => {
                "l_orderkey BIGINT NOT NULL, l_partkey INT, l_suppkey INT, l_linenumber INT, \
                 l_quantity DECIMAL(15,2), l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), \
                 l_tax DECIMAL(15,2), l_returnflag VARCHAR(1), l_linestatus VARCHAR(1), l_shipdate DATE, \
                 l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR(25), l_shipmode VARCHAR(10), \
                 l_comment VARCHAR(44)"
            }
            Self::AccessLog => {
                "id BIGINT NOT NULL, ts DATETIME, client VARCHAR(40), method VARCHAR(8), url VARCHAR(255), \
                 status SMALLINT, size INT"
            }
        }
    }

    /// The columns of QuestDB's table: repeated words are symbols, and a server-generated time defines the order.
    fn questdb_columns(self) -> &'static str {
        match self {
            Self::Small | Self::Keyed => "id LONG, name VARCHAR, score INT",
            Self::Lineitem => {
                "l_orderkey LONG, l_partkey INT, l_suppkey INT, l_linenumber INT, l_quantity DOUBLE, \
                 l_extendedprice DOUBLE, l_discount DOUBLE, l_tax DOUBLE, l_returnflag SYMBOL, \
                 l_linestatus SYMBOL, l_shipdate TIMESTAMP, l_commitdate TIMESTAMP, l_receiptdate TIMESTAMP, \
                 l_shipinstruct SYMBOL, l_shipmode SYMBOL, l_comment VARCHAR"
            }
            Self::AccessLog => {
                "id LONG, ts TIMESTAMP, client VARCHAR, method SYMBOL, url VARCHAR, status SHORT, size INT"
            }
        }
    }

    /// The number of columns.
    pub fn width(self) -> usize {
        match self {
            Self::Small | Self::Keyed => 3,
            Self::Lineitem => 16,
            Self::AccessLog => 7,
        }
    }

    /// The statements that leave an empty table. [`Self::Keyed`] has its first column for its key.
    pub fn create(self, peer: Peer) -> [String; 2] {
        let (name, columns) = (self.name(), self.columns());
        let key = columns.split_whitespace().next().expect("a table has columns");
        let (model, primary) = match self {
            Self::Keyed => ("UNIQUE", ", PRIMARY KEY (id)"),
            _ => ("DUPLICATE", ""),
        };
        let create = match peer {
            Peer::Tributary { .. } => format!(
                "CREATE TABLE {name} ({columns}) {model} KEY({key}) DISTRIBUTED BY HASH({key}) BUCKETS 1 \
                 PROPERTIES('replication_num' = '1', 'group_commit_interval_ms' = '{}')",
                peer.interval_ms()
            ),
            Peer::MariaDb => format!("CREATE TABLE {name} ({columns}{primary}) ENGINE=InnoDB"),
            Peer::PostgreSql => {
                format!("CREATE TABLE {name} ({}{primary})", columns.replace("DATETIME", "TIMESTAMP"))
            }
            Peer::QuestDb => format!(
                "CREATE TABLE {name} ({}, at TIMESTAMP) TIMESTAMP(at) PARTITION BY DAY WAL",
                self.questdb_columns()
            ),
        };
        [format!("DROP TABLE IF EXISTS {name}"), create]
    }
}
