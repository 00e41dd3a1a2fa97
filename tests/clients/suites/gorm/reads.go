package main

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type ageCount struct {
	Age   int
	Total int64
}

type shortUser struct{ Name string }

func reads(db *gorm.DB) {
	names := func(query *gorm.DB) (any, error) {
		users := []User{}
		err := query.Find(&users).Error
		found := []string{}
		for _, user := range users {
			found = append(found, user.Name)
		}
		return found, err
	}
	check("first, take and last", func() (any, error) {
		first, taken, last := User{}, User{}, User{}
		err := errors.Join(db.First(&first).Error, db.Where("name = ?", "user 007").Take(&taken).Error, db.Last(&last).Error)
		return []string{first.Name, taken.Name, last.Name}, err
	}, []string{"Ann", "user 007", "Bob"})
	check("a record that is not found", func() (any, error) {
		return errors.Is(db.First(&User{}, 99999999).Error, gorm.ErrRecordNotFound), nil
	}, true)
	check("conditions of a struct, a map and a list", func() (any, error) {
		var a, b, c int64
		err := errors.Join(db.Model(&User{}).Where(&User{Age: 6}).Count(&a).Error,
			db.Model(&User{}).Where(map[string]any{"age": 6, "active": true}).Count(&b).Error,
			db.Model(&User{}).Where("name IN ?", []string{"user 008", "user 009", "nobody"}).Count(&c).Error)
		return []int64{a, b, c}, err
	}, []int64{10, 10, 2})
	check("or, not and brackets", func() (any, error) {
		return names(db.Where(db.Where("name = ?", "user 011").Or("name = ?", "user 012")).Not("age", 1).Order("name"))
	}, []string{"user 012"})
	check("like", func() (any, error) { return names(db.Where("name LIKE ?", "user 09%").Order("id DESC").Limit(2)) },
		[]string{"user 099", "user 098"})
	check("like in any case", func() (any, error) {
		return names(db.Where("name LIKE ?", "USER 09%").Order("id").Limit(1))
	}, []string{"user 090"})
	check("pages by a scope", func() (any, error) {
		page := func(number, size int) func(*gorm.DB) *gorm.DB {
			return func(query *gorm.DB) *gorm.DB { return query.Offset((number - 1) * size).Limit(size) }
		}
		return names(db.Where("name LIKE 'user%'").Order("name").Scopes(page(3, 2)))
	}, []string{"user 005", "user 006"})
	check("order by an expression with arguments", func() (any, error) {
		order := []any{[]string{"user 022", "user 020", "user 021"}}
		return names(db.Where("name IN ?", []string{"user 020", "user 021", "user 022"}).
			Clauses(clause.OrderBy{Expression: clause.Expr{SQL: "FIELD(name, ?)", Vars: order, WithoutParentheses: true}}))
	}, []string{"user 022", "user 020", "user 021"})
	check("count and distinct", func() (any, error) {
		var all, ages int64
		err := errors.Join(db.Model(&User{}).Where("name LIKE 'user 0_%'").Count(&all).Error,
			db.Model(&User{}).Where("name LIKE 'user 02_'").Distinct("active").Count(&ages).Error)
		return []int64{all, ages}, err
	}, []int64{99, 2})
	check("group and having", func() (any, error) {
		lines := []ageCount{}
		err := db.Model(&User{}).Select("age, count(*) as total").Where("name LIKE 'user 0_%'").
			Group("age").Having("total > ?", 9).Order("age").Limit(2).Scan(&lines).Error
		return lines, err
	}, []ageCount{{1, 10}, {6, 10}})
	check("a subquery", func() (any, error) {
		return names(db.Where("id > (?)", db.Model(&User{}).Select("AVG(id)").Where("name LIKE ?", "user%")).Order("id").Limit(1))
	}, []string{"user 051"})
	check("a subquery in FROM", func() (any, error) {
		var highest int
		err := db.Table("(?) as u", db.Model(&User{}).Select("age").Where("age > ?", 50)).Select("MAX(u.age)").Scan(&highest).Error
		return highest, err
	}, 77)
	check("pluck and a smaller struct", func() (any, error) {
		ages, shorts := []int{}, []shortUser{}
		err := errors.Join(db.Model(&User{}).Where("name LIKE 'user 03_'").Order("name").Limit(3).Pluck("age", &ages).Error,
			db.Model(&User{}).Order("name").Limit(1).Find(&shorts).Error)
		return []any{ages, shorts}, err
	}, []any{[]int{0, 1, 2}, []shortUser{{"Ann"}}})
	check("raw and named arguments", func() (any, error) {
		var sum int
		err := db.Raw("SELECT @a + @b", map[string]any{"a": 2, "b": 3}).Scan(&sum).Error
		return sum, err
	}, 5)
	check("raw into maps", func() (any, error) {
		rows := []map[string]any{}
		err := db.Raw("SELECT code, stock FROM products ORDER BY code").Scan(&rows).Error
		return rows, err
	}, []map[string]any{{"code": "p1", "stock": int64(5)}, {"code": "p2", "stock": int64(7)}})
	check("row by row", func() (any, error) {
		rows, err := db.Model(&Entry{}).Where("owner = ?", 900).Rows()
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		sum := 0.0
		for rows.Next() {
			entry := Entry{}
			if err := db.ScanRows(rows, &entry); err != nil {
				return nil, err
			}
			sum += entry.Price
		}
		return sum, rows.Err()
	}, 7843.75)
	check("find in batches", func() (any, error) {
		entries, sizes := []Entry{}, []int{}
		err := db.Where("owner = ?", 900).FindInBatches(&entries, 100, func(*gorm.DB, int) error {
			sizes = append(sizes, len(entries))
			return nil
		}).Error
		return sizes, err
	}, []int{100, 100, 50})
	check("rows are locked", func() (any, error) {
		return names(db.Clauses(clause.Locking{Strength: "UPDATE"}).Where("name = ?", "Bob"))
	}, []string{"Bob"})
	check("an index hint in a comment", func() (any, error) {
		var count int64
		err := db.Raw("SELECT /*+ MAX_EXECUTION_TIME(5000) */ COUNT(*) FROM entries").Scan(&count).Error
		return count, err
	}, int64(250))
	check("first or create, first or init", func() (any, error) {
		made, again, init := Company{}, Company{}, Company{}
		first := db.Where(Company{Name: "Initech"}).FirstOrCreate(&made)
		second := db.Where(Company{Name: "Initech"}).FirstOrCreate(&again)
		err := errors.Join(first.Error, second.Error, db.Where(Company{Name: "Nobody"}).FirstOrInit(&init).Error)
		return []any{first.RowsAffected, second.RowsAffected, made.ID == again.ID, made.ID > 0, fmt.Sprint(init)}, err
	}, []any{int64(1), int64(0), true, true, "{0 Nobody}"})
}
