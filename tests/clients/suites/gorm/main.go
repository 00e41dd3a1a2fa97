// Migrates models with gorm and uses them: reads, writes, associations, transactions and changes of tables.
package main

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const longestReason = 700

var misses int

func main() {
	must(open("", "").Exec("CREATE DATABASE shop").Error)
	db := open("shop", "")
	migrations(db)
	writes(db)
	reads(db)
	upserts(db)
	transactions(db)
	associations(db)
	connections()
	changes(db)
	if misses > 0 {
		os.Exit(1)
	}
}

// open connects as an application does: times are time.Time, and gorm's own settings stay as they are.
func open(database, options string) *gorm.DB {
	source := fmt.Sprintf("root:@tcp(127.0.0.1:%s)/%s?charset=utf8mb4&parseTime=True&loc=UTC%s",
		os.Getenv("SUITE_PORT"), database, options)
	db, err := gorm.Open(mysql.Open(source), &gorm.Config{Logger: logger.Discard, TranslateError: true})
	must(err)
	return db
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// check runs a check and prints how it went; the body has to return what is expected.
func check(name string, body func() (any, error), expected any) {
	found, err := attempt(body)
	reason := ""
	switch {
	case err != nil:
		reason = err.Error()
	case !reflect.DeepEqual(found, expected):
		reason = fmt.Sprintf("found %#v, expected %#v", found, expected)
	default:
		fmt.Println("ok " + name)
		return
	}
	misses++
	reason = strings.Join(strings.Fields(reason), " ")
	if len(reason) > longestReason {
		reason = reason[:longestReason]
	}
	fmt.Printf("MISS %s: %s\n", name, reason)
}

func attempt(body func() (any, error)) (found any, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	return body()
}
