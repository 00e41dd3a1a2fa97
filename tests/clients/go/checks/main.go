// go-sql-driver against a server: checks CHECK PORT DATABASE
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

const dt = `CREATE TABLE dt (id INT NOT NULL, name VARCHAR(50) NULL, score INT NULL)
	DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
	PROPERTIES ("replication_num" = "1", "group_commit_interval_ms" = "500")`

const typed = `CREATE TABLE types (k INT NOT NULL, b BOOLEAN, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(27,9), day DATE,
	at DATETIME, at6 DATETIME(6), c CHAR(10), v VARCHAR(100), txt STRING)
	DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")`

var port, database string

func main() {
	checks := map[string]func(){
		"prepared": func() { types("parseTime=true") },
		// The driver puts the values into the text itself.
		"interpolated": func() { types("parseTime=true&interpolateParams=true") },
		"statements":   statements,
		"transactions": transactions,
		"mode":         mode,
		"failures":     failures,
	}
	port, database = os.Args[2], os.Args[3]
	checks[os.Args[1]]()
	fmt.Println("ok")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(found, expected interface{}, what string) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%s\n   found: %#v\nexpected: %#v", what, found, expected))
	}
}

func open(options string) *sql.DB {
	db, err := sql.Open("mysql", fmt.Sprintf("root:@tcp(127.0.0.1:%s)/%s?%s", port, database, options))
	must(err)
	must(db.Ping())
	return db
}

func exec(db *sql.DB, statement string, values ...interface{}) int64 {
	result, err := db.Exec(statement, values...)
	must(err)
	rows, err := result.RowsAffected()
	must(err)
	return rows
}

// Values of all types, through placeholders.
func types(options string) {
	db := open(options)
	defer db.Close()
	exec(db, typed)
	day := time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
	at := time.Date(2024, 2, 29, 23, 59, 59, 0, time.UTC)
	at6 := at.Add(123456 * time.Microsecond)
	text := "Grüße 'one' \"two\" \\ \n\x00 😀"
	insert := "INSERT INTO types VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	equal(exec(db, insert, 1, true, int64(1)<<62, float32(1.5), -2.25e-10, "123456789012345678.123456789", day, at, at6,
		"abc", text, strings.Repeat("x", 100000)), int64(1), "affected rows")
	equal(exec(db, insert, 2, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil), int64(1), "affected rows")
	equal(exec(db, insert, 3, sql.NullBool{Valid: true}, uint64(7), 1, 2, 3.5, "1999-12-31", "1999-12-31 00:00:00",
		[]byte("1999-12-31 00:00:00.000001"), "", []byte("bytes"), ""), int64(1), "affected rows")

	var b bool
	var l int64
	var f float32
	var d float64
	var n, c, v, txt string
	var gotDay, gotAt, gotAt6 time.Time
	row := db.QueryRow("SELECT b, l, f, d, n, day, at, at6, c, v, txt FROM types WHERE k = ?", 1)
	must(row.Scan(&b, &l, &f, &d, &n, &gotDay, &gotAt, &gotAt6, &c, &v, &txt))
	equal([]interface{}{b, l, f, d, n, c, v, txt}, []interface{}{true, int64(1) << 62, float32(1.5), -2.25e-10,
		"123456789012345678.123456789", "abc", text, strings.Repeat("x", 100000)}, "row 1")
	for _, pair := range [][2]time.Time{{gotDay, day}, {gotAt, at}, {gotAt6, at6}} {
		if !pair[0].Equal(pair[1]) {
			panic(fmt.Sprintf("%v is not %v", pair[0], pair[1]))
		}
	}

	values := make([]interface{}, 12)
	places := make([]interface{}, 12)
	for i := range values {
		places[i] = &values[i]
	}
	must(db.QueryRow("SELECT * FROM types WHERE k = ?", 2).Scan(places...))
	for i, value := range values[1:] {
		equal(value, nil, fmt.Sprintf("column %d of row 2", i+1))
	}

	var total int
	must(db.QueryRow("SELECT count(*) FROM types WHERE at6 = ? AND v = ?", "1999-12-31 00:00:00.000001", "bytes").Scan(&total))
	equal(total, 1, "row 3")
}

// A prepared statement that is kept, and rows read one by one.
func statements() {
	db := open("")
	defer db.Close()
	exec(db, dt)
	insert, err := db.Prepare("INSERT INTO dt (id, name, score) VALUES (?, ?, ?)")
	must(err)
	for id := 0; id < 300; id++ {
		_, err := insert.Exec(id, fmt.Sprintf("name %d", id), id%3)
		must(err)
	}
	must(insert.Close())
	rows, err := db.Query("SELECT id, name FROM dt WHERE score = ? ORDER BY id", 1)
	must(err)
	count := 0
	for rows.Next() {
		var id int
		var name string
		must(rows.Scan(&id, &name))
		equal(id, count*3+1, "id")
		equal(name, fmt.Sprintf("name %d", id), "name")
		count++
	}
	must(rows.Err())
	equal(count, 100, "rows")
}

func transactions() {
	db := open("")
	defer db.Close()
	exec(db, dt)
	count := func() (n int) {
		must(db.QueryRow("SELECT count(*) FROM dt").Scan(&n))
		return n
	}
	tx, err := db.Begin()
	must(err)
	_, err = tx.Exec("INSERT INTO dt VALUES (1, 'a', 1)")
	must(err)
	_, err = tx.Exec("INSERT INTO dt VALUES (?, ?, ?)", 2, "b", 2)
	must(err)
	equal(count(), 0, "before Commit")
	must(tx.Commit())
	equal(count(), 2, "after Commit")
	tx, err = db.Begin()
	must(err)
	_, err = tx.Exec("INSERT INTO dt VALUES (3, 'c', 3)")
	must(err)
	must(tx.Rollback())
	equal(count(), 2, "after Rollback")
}

// The session variable in the address, and a connection's own SET.
func mode() {
	db := open("group_commit=%27sync_mode%27")
	defer db.Close()
	exec(db, dt)
	var mode string
	must(db.QueryRow("SELECT @@group_commit").Scan(&mode))
	equal(mode, "sync_mode", "mode")
	equal(exec(db, "INSERT INTO dt VALUES (1, 'a', 1)"), int64(1), "affected rows")
	var n int
	must(db.QueryRow("SELECT count(*) FROM dt").Scan(&n))
	equal(n, 1, "a sync load is visible")

	connection, err := db.Conn(context.Background())
	must(err)
	defer connection.Close()
	_, err = connection.ExecContext(context.Background(), "SET group_commit = async_mode")
	must(err)
	_, err = connection.ExecContext(context.Background(), "INSERT INTO dt VALUES (?, ?, ?)", 2, "b", 2)
	must(err)
	var txn, label, name, table, status string
	var loaded, filtered int
	row := connection.QueryRowContext(context.Background(), "SHOW LAST INSERT")
	must(row.Scan(&txn, &label, &name, &table, &status, &loaded, &filtered))
	if !strings.HasPrefix(label, "group_commit_") {
		panic("no group commit: " + label)
	}
}

func failures() {
	db := open("")
	defer db.Close()
	exec(db, dt)
	fails := func(err error, number uint16, state, text string) {
		var failure *mysql.MySQLError
		if !errors.As(err, &failure) {
			panic(fmt.Sprintf("not an error of the server: %v", err))
		}
		equal([]interface{}{failure.Number, string(failure.SQLState[:])}, []interface{}{number, state}, failure.Message)
		if !strings.Contains(failure.Message, text) {
			panic(failure.Message)
		}
	}
	_, err := db.Exec("INSERT INTO nowhere VALUES (1)")
	fails(err, 1146, "42S02", "Table [nowhere] does not exist in database")
	_, err = db.Exec("INSERT INTO dt VALUES (?, ?, ?)", "x", "a", 1)
	fails(err, 1105, "HY000", "column(id) value is incorrect while strict mode is true, src value is x")
	_, err = db.Exec("SELEC ?", 1)
	fails(err, 1064, "42000", "errCode = 2, detailMessage = ")
	refused, err := sql.Open("mysql", fmt.Sprintf("root:wrong@tcp(127.0.0.1:%s)/%s", port, database))
	must(err)
	fails(refused.Ping(), 1045, "28000", "Access denied for user")
}
