package main

import (
	"errors"
	"fmt"
	"sync"

	"gorm.io/gorm"
)

var errStop = errors.New("stop")

func transactions(db *gorm.DB) {
	titles := func(user uint) (any, error) {
		found := []string{}
		err := db.Model(&Entry{}).Where("owner = ?", user).Order("title").Pluck("title", &found).Error
		return found, err
	}
	check("a transaction that commits", func() (any, error) {
		err := db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Entry{Owner: 1001, Title: "a"}).Error, tx.Create(&Entry{Owner: 1001, Title: "b"}).Error)
		})
		found, second := titles(1001)
		return found, errors.Join(err, second)
	}, []string{"a", "b"})
	check("a transaction that rolls back", func() (any, error) {
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Entry{Owner: 1002, Title: "a"}).Error; err != nil {
				return err
			}
			return errStop
		})
		found, second := titles(1002)
		return []any{errors.Is(err, errStop), found}, second
	}, []any{true, []string{}})
	check("a nested transaction", func() (any, error) {
		err := db.Transaction(func(outer *gorm.DB) error {
			first := outer.Create(&Entry{Owner: 1003, Title: "kept"}).Error
			inner := outer.Transaction(func(inner *gorm.DB) error {
				if err := inner.Create(&Entry{Owner: 1003, Title: "dropped"}).Error; err != nil {
					return err
				}
				return errStop
			})
			if !errors.Is(inner, errStop) {
				return inner
			}
			return first
		})
		found, second := titles(1003)
		return found, errors.Join(err, second)
	}, []string{"kept"})
	check("savepoints", func() (any, error) {
		tx := db.Begin()
		errs := errors.Join(tx.Error, tx.Create(&Entry{Owner: 1004, Title: "kept"}).Error, tx.SavePoint("half").Error,
			tx.Create(&Entry{Owner: 1004, Title: "dropped"}).Error, tx.RollbackTo("half").Error,
			tx.Create(&Entry{Owner: 1004, Title: "last"}).Error,
			tx.Commit().Error)
		found, second := titles(1004)
		return found, errors.Join(errs, second)
	}, []string{"kept", "last"})
	check("a transaction reads its own rows", func() (any, error) {
		var inside int64
		err := db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Entry{Owner: 1005, Title: "a"}).Error,
				tx.Model(&Entry{}).Where("owner = ?", 1005).Count(&inside).Error)
		})
		return inside, err
	}, int64(1))
	check("update and delete in a transaction", func() (any, error) {
		err := db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Model(&Entry{}).Where("owner = ? AND title = ?", 1001, "a").Update("title", "c").Error,
				tx.Where("owner = ? AND title = ?", 1001, "b").Delete(&Entry{}).Error)
		})
		found, second := titles(1001)
		return found, errors.Join(err, second)
	}, []string{"c"})
	check("a transaction of two tables", func() (any, error) {
		var companies int64
		err := db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Create(&Entry{Owner: 1006, Title: "a"}).Error, tx.Create(&Company{Name: "Hooli"}).Error)
		})
		found, second := titles(1006)
		return []any{found, db.Model(&Company{}).Where("name = 'Hooli'").Count(&companies).Error, companies}, errors.Join(err, second)
	}, []any{[]string{"a"}, error(nil), int64(1)})
	check("a transaction of two tables, by gorm itself", func() (any, error) {
		user := User{Name: "Dora", Amount: "0", Company: Company{Name: "Globex"}}
		err := db.Create(&user).Error
		return user.CompanyID != nil, err
	}, true)
	check("an update that is rolled back", func() (any, error) {
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Model(&Product{}).Where("code = ?", "p2").Update("stock", 70).Error; err != nil {
				return err
			}
			return errStop
		})
		found := Product{}
		return []any{errors.Is(err, errStop), db.First(&found, "code = ?", "p2").Error, found.Stock}, nil
	}, []any{true, error(nil), 7})
	check("many sessions write at once", func() (any, error) {
		var group sync.WaitGroup
		failures := make([]error, 8)
		for writer := range failures {
			group.Add(1)
			go func(writer int) {
				defer group.Done()
				for n := 0; n < 25 && failures[writer] == nil; n++ {
					failures[writer] = db.Create(&Entry{Owner: 1007, Title: fmt.Sprint(writer, "-", n)}).Error
				}
			}(writer)
		}
		group.Wait()
		var rows, keys int64
		entries := db.Model(&Entry{}).Where("owner = ?", 1007)
		failures = append(failures, entries.Count(&rows).Error,
			db.Model(&Entry{}).Where("owner = ?", 1007).Distinct("id").Count(&keys).Error)
		return []int64{rows, keys}, errors.Join(failures...)
	}, []int64{200, 200})
}
