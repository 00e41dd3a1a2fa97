package main

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type bill struct {
	Name  string
	Total float64
}

// associations writes each table by itself: gorm would else put them into one transaction, which is of one table here.
func associations(db *gorm.DB) {
	db = db.Session(&gorm.Session{SkipDefaultTransaction: true, NewDB: true})
	check("create with associations", func() (any, error) {
		user := User{Name: "Cleo", Email: "cleo@example.org", Amount: "0",
			Company: Company{Name: "Stark"}, Profile: Profile{City: "Oslo"},
			Orders:    []Order{{Title: "desk", Price: 100}, {Title: "lamp", Price: 20}},
			Languages: []Language{{"en", "English"}, {"no", "Norwegian"}}}
		err := db.Create(&user).Error
		return []bool{user.CompanyID != nil && *user.CompanyID > 0, user.Profile.UserID == user.ID && user.ID > 0}, err
	}, []bool{true, true})
	if errors.Is(db.First(&User{}, "name = ?", "Cleo").Error, gorm.ErrRecordNotFound) {
		// The other checks need the rows, even if one of gorm's own statements was refused.
		createEach(db)
	}
	check("preload", func() (any, error) {
		user := User{}
		err := db.Preload("Orders", sorted("orders.price DESC")).Preload("Languages", sorted("code")).Preload("Profile").
			Preload("Company").First(&user, "name = ?", "Cleo").Error
		found := []string{user.Company.Name, user.Profile.City}
		for _, order := range user.Orders {
			found = append(found, order.Title)
		}
		for _, language := range user.Languages {
			found = append(found, language.Code)
		}
		return found, err
	}, []string{"Stark", "Oslo", "desk", "lamp", "en", "no"})
	check("joins", func() (any, error) {
		user := User{}
		err := db.Joins("Company").Joins("Profile").First(&user, "users.name = ?", "Cleo").Error
		return []string{user.Name, user.Company.Name, user.Profile.City}, err
	}, []string{"Cleo", "Stark", "Oslo"})
	check("a join of the application's", func() (any, error) {
		found := bill{}
		err := db.Model(&User{}).Select("users.name, SUM(orders.price) AS total").
			Joins("LEFT JOIN orders ON orders.user_id = users.id").
			Where("users.name = ?", "Cleo").Group("users.name").Scan(&found).Error
		return found, err
	}, bill{"Cleo", 120})
	cleo := User{}
	check("find the owner", func() (any, error) { return nil, db.First(&cleo, "name = ?", "Cleo").Error }, nil)
	check("append to and count an association", func() (any, error) {
		err := db.Model(&cleo).Association("Languages").Append(&Language{"de", "German"})
		return db.Model(&cleo).Association("Languages").Count(), err
	}, int64(3))
	check("take from an association", func() (any, error) {
		err := db.Model(&cleo).Association("Languages").Delete(&Language{Code: "de"})
		return db.Model(&cleo).Association("Languages").Count(), err
	}, int64(2))
	check("replace an association", func() (any, error) {
		err := db.Model(&cleo).Association("Languages").Replace(&Language{Code: "fr", Name: "French"})
		found := []Language{}
		return []any{db.Model(&cleo).Association("Languages").Find(&found), found}, err
	}, []any{error(nil), []Language{{"fr", "French"}}})
	check("clear an association", func() (any, error) {
		err := db.Model(&cleo).Association("Languages").Clear()
		return db.Model(&cleo).Association("Languages").Count(), err
	}, int64(0))
	check("delete with associations", func() (any, error) {
		err := db.Select("Orders", "Profile").Delete(&cleo).Error
		var orders int64
		return []any{db.Model(&Order{}).Where("user_id = ?", cleo.ID).Count(&orders).Error, orders}, err
	}, []any{error(nil), int64(0)})
}

func sorted(by string) func(*gorm.DB) *gorm.DB {
	return func(query *gorm.DB) *gorm.DB { return query.Order(by) }
}

func createEach(db *gorm.DB) {
	company := Company{Name: "Stark"}
	db.Create(&company)
	user := User{Name: "Cleo", Email: "cleo@example.org", Amount: "0", CompanyID: &company.ID}
	db.Omit(clause.Associations).Create(&user)
	db.Create(&Profile{UserID: user.ID, City: "Oslo"})
	db.Create(&[]Order{{UserID: user.ID, Title: "desk", Price: 100}, {UserID: user.ID, Title: "lamp", Price: 20}})
	db.Create(&[]Language{{"en", "English"}, {"no", "Norwegian"}})
	for _, code := range []string{"en", "no"} {
		db.Table("user_languages").Create(map[string]any{"user_id": user.ID, "language_code": code})
	}
}
