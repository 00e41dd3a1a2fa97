package main

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

var moment = time.Date(2024, 2, 29, 12, 30, 45, 0, time.UTC)

func writes(db *gorm.DB) {
	check("create", func() (any, error) {
		user := User{Name: "Ann", Email: "ann@example.org", Age: 30, Score: 1.5, Amount: "12.50", Active: true, Birthday: &moment,
			Settings: map[string]any{"theme": "dark", "size": 2.0}}
		result := db.Create(&user)
		if result.Error != nil {
			return nil, result.Error
		}
		found := User{}
		err := db.First(&found, user.ID).Error
		return []any{result.RowsAffected, user.ID > 0, found.Name, found.Age, found.Score, found.Amount,
			found.Active, found.Birthday.UTC(), found.Note == nil, found.Settings["theme"],
			found.CreatedAt.Sub(user.CreatedAt).Abs() < 2*time.Millisecond}, err
	}, []any{int64(1), true, "Ann", 30, 1.5, "12.50", true, moment, true, "dark", true})
	check("create many, with their generated keys", func() (any, error) {
		users := []User{}
		for n := 1; n <= 100; n++ {
			name, email := fmt.Sprintf("user %03d", n), fmt.Sprintf("%d@example.org", n)
			users = append(users, User{Name: name, Email: email, Age: n % 10, Amount: "1.25", Active: n%2 == 0})
		}
		result := db.Create(&users)
		if result.Error != nil {
			return nil, result.Error
		}
		found := User{}
		err := db.First(&found, users[41].ID).Error
		return []any{result.RowsAffected, found.Name}, err
	}, []any{int64(100), "user 042"})
	check("create in batches", func() (any, error) {
		entries := []Entry{}
		for n := 1; n <= 250; n++ {
			entries = append(entries, Entry{Owner: 900, Title: fmt.Sprint("entry ", n), Price: float64(n) / 4})
		}
		err := db.CreateInBatches(&entries, 100).Error
		var sum float64
		second := db.Model(&Entry{}).Select("SUM(price)").Where("owner = 900").Scan(&sum).Error
		return []any{entries[249].ID > entries[0].ID, sum}, errors.Join(err, second)
	}, []any{true, 7843.75})
	check("create of chosen columns", func() (any, error) {
		user := User{Name: "Bob", Email: "hidden", Age: 50, Amount: "0"}
		err := db.Select("Name", "Age", "Amount", "CreatedAt").Create(&user).Error
		found := User{}
		return []any{db.First(&found, user.ID).Error, found.Name, found.Email, found.Age}, err
	}, []any{error(nil), "Bob", "", 50})
	check("create from a map", func() (any, error) {
		err := db.Model(&Company{}).Create([]map[string]any{{"Name": "Acme"}, {"Name": "Umbrella"}}).Error
		names := []string{}
		return []any{db.Model(&Company{}).Order("name").Pluck("name", &names).Error, names}, err
	}, []any{error(nil), []string{"Acme", "Umbrella"}})
	check("hooks", func() (any, error) {
		err := db.Create(&[]Product{{Code: "p1", Stock: 5}, {Code: "p2", Name: "lamp", Stock: 7}}).Error
		found := Product{}
		return []any{db.First(&found, "code = ?", "p1").Error, found.Name, found.Version}, err
	}, []any{error(nil), "unnamed p1", 1})
	check("each kind of column", func() (any, error) {
		row := Kinds{Small: -128, Medium: -32768, Plain: -2147483648, Big: -9223372036854775808, Natural: 4294967295, Half: 0.25,
			Text: "ünï 🙂 ' \" \\", Fixed: "abc", Long: "long", Bytes: []byte("bytes"), Day: moment,
			Moment: moment.Add(123456 * time.Microsecond), Choice: "b", Flag: pointer(true)}
		if err := db.Create(&row).Error; err != nil {
			return nil, err
		}
		found := Kinds{}
		err := db.First(&found, row.ID).Error
		return []any{found.Small, found.Medium, found.Plain, found.Big, found.Natural, found.Half,
			found.Text, found.Fixed, found.Long, string(found.Bytes),
			found.Day.UTC(), found.Moment.UTC(), found.Choice, *found.Flag, found.Unix == row.Unix}, err
	}, []any{int8(-128), int16(-32768), int32(-2147483648), int64(-9223372036854775808), uint32(4294967295), float32(0.25),
		"ünï 🙂 ' \" \\", "abc", "long",
		"bytes", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), moment.Add(123456 * time.Microsecond), "b", true, true})
	check("bytes that are no text", func() (any, error) {
		row := Kinds{Bytes: []byte{0, 255, 254}, Day: moment, Moment: moment}
		if err := db.Create(&row).Error; err != nil {
			return nil, err
		}
		found := Kinds{}
		err := db.First(&found, row.ID).Error
		return found.Bytes, err
	}, []byte{0, 255, 254})
	check("save", func() (any, error) {
		user := User{}
		if err := db.First(&user, "name = ?", "Ann").Error; err != nil {
			return nil, err
		}
		user.Note, user.Age = pointer("saved"), 31
		result := db.Save(&user)
		found := User{}
		return []any{result.RowsAffected, db.First(&found, user.ID).Error, found.Age, *found.Note, found.Email}, result.Error
	}, []any{int64(1), error(nil), 31, "saved", "ann@example.org"})
	check("update a column", func() (any, error) {
		result := db.Model(&User{}).Where("name = ?", "user 001").Update("score", 9.5)
		found := User{}
		return []any{result.RowsAffected, db.First(&found, "name = ?", "user 001").Error, found.Score,
			found.UpdatedAt.After(found.CreatedAt)}, result.Error
	}, []any{int64(1), error(nil), 9.5, true})
	check("update of a struct and of a map", func() (any, error) {
		user := User{}
		if err := db.First(&user, "name = ?", "user 002").Error; err != nil {
			return nil, err
		}
		first := db.Model(&user).Updates(User{Age: 77, Score: 0})
		second := db.Model(&user).Updates(map[string]any{"score": 0, "active": false, "note": gorm.Expr("CONCAT(name, '!')")})
		found := User{}
		return []any{db.First(&found, user.ID).Error, found.Age, found.Active, *found.Note}, errors.Join(first.Error, second.Error)
	}, []any{error(nil), 77, false, "user 002!"})
	check("update with an expression", func() (any, error) {
		two := func() *gorm.DB { return db.Model(&User{}).Where("name IN ?", []string{"user 003", "user 004"}) }
		result := two().Updates(map[string]any{"age": gorm.Expr("age * ? + ?", 10, 1)})
		ages := []int{}
		second := two().Order("name").Pluck("age", &ages).Error
		return []any{result.RowsAffected, ages}, errors.Join(result.Error, second)
	}, []any{int64(2), []int{31, 41}})
	check("update without hooks and times", func() (any, error) {
		result := db.Model(&User{}).Where("name = ?", "user 005").UpdateColumn("age", 55)
		return result.RowsAffected, result.Error
	}, int64(1))
	check("an update that changes nothing", func() (any, error) {
		result := db.Model(&Product{}).Where("code = ?", "missing").Update("stock", 1)
		return result.RowsAffected, result.Error
	}, int64(0))
	check("an update without a condition is refused by gorm", func() (any, error) {
		return errors.Is(db.Model(&User{}).Update("age", 1).Error, gorm.ErrMissingWhereClause), nil
	}, true)
	check("soft deletion", func() (any, error) {
		result := db.Where("name = ?", "user 010").Delete(&User{})
		gone := db.First(&User{}, "name = ?", "user 010").Error
		found := User{}
		return []any{result.RowsAffected, errors.Is(gone, gorm.ErrRecordNotFound),
			db.Unscoped().First(&found, "name = ?", "user 010").Error, found.DeletedAt.Valid}, result.Error
	}, []any{int64(1), true, error(nil), true})
	check("a row is restored", func() (any, error) {
		err := db.Unscoped().Model(&User{}).Where("name = ?", "user 010").Update("deleted_at", nil).Error
		return db.First(&User{}, "name = ?", "user 010").Error, err
	}, nil)
	check("deletion for good", func() (any, error) {
		result := db.Unscoped().Where("name = ?", "user 100").Delete(&User{})
		var count int64
		second := db.Unscoped().Model(&User{}).Where("name = ?", "user 100").Count(&count).Error
		return []int64{result.RowsAffected, count}, errors.Join(result.Error, second)
	}, []int64{1, 0})
	check("a key of two columns", func() (any, error) {
		err := db.Create(&[]Place{{1, 1, "a"}, {1, 2, "b"}, {2, 1, "c"}}).Error
		err = errors.Join(err, db.Model(&Place{Shelf: 1, Level: 2}).Update("goods", "new").Error,
			db.Delete(&Place{Shelf: 2, Level: 1}).Error)
		places := []Place{}
		return []any{db.Order("shelf, level").Find(&places).Error, places}, err
	}, []any{error(nil), []Place{{1, 1, "a"}, {1, 2, "new"}}})
	check("a key that exists is an error", func() (any, error) {
		return errors.Is(db.Create(&Product{Code: "p1", Stock: 5}).Error, gorm.ErrDuplicatedKey), nil
	}, true)
}
