package main

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

func upserts(db *gorm.DB) {
	product := func(code string) (any, error) {
		found := Product{}
		err := db.First(&found, "code = ?", code).Error
		return found, err
	}
	check("a conflict that does nothing", func() (any, error) {
		err := db.Clauses(clause.OnConflict{DoNothing: true}).
			Create(&[]Product{{Code: "p1", Name: "ignored", Stock: 99}, {Code: "p3", Name: "added"}}).Error
		kept, first := product("p1")
		added, second := product("p3")
		return []any{kept, added}, errors.Join(err, first, second)
	}, []any{Product{"p1", "unnamed p1", 5, 1}, Product{"p3", "added", 0, 1}})
	check("a conflict that updates all columns", func() (any, error) {
		err := db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Product{Code: "p1", Name: "new", Stock: 6, Version: 2}).Error
		found, second := product("p1")
		return found, errors.Join(err, second)
	}, Product{"p1", "new", 6, 2})
	check("a conflict that updates named columns", func() (any, error) {
		err := db.Clauses(onCode(clause.AssignmentColumns([]string{"stock"}))).
			Create(&[]Product{{Code: "p1", Name: "not taken", Stock: 8, Version: 3}, {Code: "p4", Name: "added", Stock: 1}}).Error
		found, second := product("p1")
		added, third := product("p4")
		return []any{found, added}, errors.Join(err, second, third)
	}, []any{Product{"p1", "new", 8, 2}, Product{"p4", "added", 1, 1}})
	check("a conflict that sets a value", func() (any, error) {
		err := db.Clauses(onCode(clause.Assignments(map[string]any{"name": "given"}))).
			Create(&Product{Code: "p1", Name: "not taken", Stock: 9}).Error
		found, second := product("p1")
		return found, errors.Join(err, second)
	}, Product{"p1", "given", 8, 2})
	check("a conflict that counts", func() (any, error) {
		err := db.Clauses(onCode(clause.Assignments(map[string]any{"stock": gorm.Expr("stock + VALUES(stock)")}))).
			Create(&Product{Code: "p1", Name: "not taken", Stock: 10}).Error
		found, second := product("p1")
		return found, errors.Join(err, second)
	}, Product{"p1", "given", 18, 2})
	check("save of a row with a new key inserts it", func() (any, error) {
		result := db.Save(&Product{Code: "p5", Name: "saved", Stock: 1, Version: 1})
		found, second := product("p5")
		return found, errors.Join(result.Error, second)
	}, Product{"p5", "saved", 1, 1})
}

func onCode(updates clause.Set) clause.OnConflict {
	return clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: updates}
}
