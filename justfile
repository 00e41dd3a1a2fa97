# What a developer runs. `just` (any version) lists it; each line can be typed without `just` as well.

_list:
    @{{quote(just_executable())}} --list --unsorted

# a server, with its data in ./tributary-data
run *args:
    cargo run --release -- serve {{args}}

# all tests, with the clients that they use (installed once)
test *args:
    scripts/test {{args}}

# the tests of one crate, without real clients: just quick ingest
quick crate *args:
    cargo test -p tributary-{{crate}} {{args}}

# one measurement: just bench jdbc --connections 10
bench *args:
    cargo run --release -- bench {{args}}

# the same loads against MariaDB, PostgreSQL and QuestDB: just compare --rounds 1
compare *args:
    scripts/compare {{args}}

# seeds of the simulation: just sim 0..1000
sim seeds="0..1000" jobs="2":
    cargo run --release -p tributary-sim -- --seeds {{seeds}} --jobs {{jobs}}

# each planted bug in a copy of the workspace, and the seed that finds it
hunt *args:
    scripts/hunt {{args}}

# fuzzers: just fuzz csv 600
fuzz target="all" seconds="120":
    scripts/fuzz {{target}} {{seconds}}

# random queries, compared with MariaDB and DuckDB: just sqldiff --seconds 60
sqldiff *args:
    scripts/sqldiff {{args}}

# the real server, killed again and again
torture duration="10m" *args:
    cargo run --release -- torture --duration {{duration}} {{args}}

# licences, duplicate versions, bans and, with a network, advisories (needs cargo-deny)
deny *args:
    cargo deny check {{args}}

# the documentation site, with its links checked; just book serve
book *args:
    scripts/book {{args}}

# the code blocks of the tutorial and the how-tos, against a release build
test-docs *args:
    scripts/test-docs {{args}}

# the spelling of documents and comments
spelling:
    scripts/spelling

# what must pass before a change lands
gate:
    .ci/run
