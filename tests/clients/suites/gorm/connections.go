package main

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"
)

func connections() {
	read := func(db *gorm.DB) (any, error) {
		first, again := Product{}, Product{}
		err := errors.Join(db.First(&first, "code = ? AND stock = ?", "p2", 7).Error,
			db.First(&again, "code = ? AND stock = ?", "p2", 7).Error)
		return []string{first.Name, again.Name}, err
	}
	check("statements that stay prepared", func() (any, error) {
		return read(open("shop", "").Session(&gorm.Session{PrepareStmt: true}))
	}, []string{"lamp", "lamp"})
	check("values in the text of statements", func() (any, error) {
		return read(open("shop", "&interpolateParams=true"))
	}, []string{"lamp", "lamp"})
	check("found rather than changed rows", func() (any, error) {
		db := open("shop", "&clientFoundRows=true")
		result := db.Model(&Product{}).Where("code = ?", "p2").Update("stock", 7)
		return result.RowsAffected, result.Error
	}, int64(1))
	check("several statements at once", func() (any, error) {
		return nil, open("shop", "&multiStatements=true").
			Exec("UPDATE products SET stock = 71 WHERE code = 'p2'; UPDATE products SET stock = 7 WHERE code = 'p2'").Error
	}, nil)
	check("settings in the address", func() (any, error) {
		var mode string
		err := open("shop", "&sql_mode=%27STRICT_TRANS_TABLES%27&time_zone=%27%2B00%3A00%27").Raw("SELECT @@sql_mode").Scan(&mode).Error
		return mode, err
	}, "STRICT_TRANS_TABLES")
	check("a query that takes too long is given up", func() (any, error) {
		limited, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		err := open("shop", "").WithContext(limited).Exec("SELECT SLEEP(20)").Error
		return errors.Is(err, context.DeadlineExceeded), nil
	}, true)
	check("generics", func() (any, error) {
		found, err := gorm.G[Product](open("shop", "")).Where("code = ?", "p2").First(context.Background())
		return found.Name, err
	}, "lamp")
}
