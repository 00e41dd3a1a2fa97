package main

import (
	"strings"

	"gorm.io/gorm"
)

func migrations(db *gorm.DB) {
	models := []any{&Company{}, &Language{}, &User{}, &Order{}, &Entry{}, &Profile{}, &Product{}, &Place{}, &Kinds{}}
	check("connect", func() (any, error) {
		var version string
		err := db.Raw("SELECT VERSION()").Scan(&version).Error
		return strings.Count(version, ".") >= 2, err
	}, true)
	check("migrate", func() (any, error) {
		err := db.AutoMigrate(models...)
		return db.Migrator().HasTable("users") && db.Migrator().HasTable("user_languages"), err
	}, true)
	check("migrate again", func() (any, error) { return nil, db.AutoMigrate(models...) }, nil)
	check("columns of a table", func() (any, error) {
		types, err := db.Migrator().ColumnTypes(&Product{})
		found := []string{}
		for _, kind := range types {
			nullable, _ := kind.Nullable()
			key, _ := kind.PrimaryKey()
			text := kind.Name() + " " + kind.DatabaseTypeName()
			if !nullable {
				text += " not null"
			}
			if key {
				text += " key"
			}
			found = append(found, text)
		}
		return found, err
	}, []string{"code varchar not null key", "name varchar", "stock bigint", "version bigint"})
	check("tables and the current database", func() (any, error) {
		tables, err := db.Migrator().GetTables()
		return []any{len(tables), db.Migrator().CurrentDatabase()}, err
	}, []any{10, "shop"})
	check("a table that is missing", func() (any, error) {
		return []bool{db.Migrator().HasTable("nobody"),
			db.Migrator().HasColumn(&User{}, "nothing"), db.Migrator().HasColumn(&User{}, "email")}, nil
	}, []bool{false, false, true})
}
