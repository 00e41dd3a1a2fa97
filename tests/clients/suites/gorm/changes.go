package main

import (
	"errors"

	"gorm.io/gorm"
)

// widened is the table of Product after the application has changed.
type widened struct {
	Code    string `gorm:"primaryKey;size:20"`
	Name    string `gorm:"size:200"`
	Stock   int64
	Version int    `gorm:"default:1"`
	Colour  string `gorm:"size:20;default:red;comment:of the surface"`
}

func (widened) TableName() string { return "products" }

func changes(db *gorm.DB) {
	migrator := db.Migrator()
	check("migrate a changed model", func() (any, error) {
		err := db.AutoMigrate(&widened{})
		row := widened{}
		return []any{migrator.HasColumn(&widened{}, "colour"), db.First(&row, "code = ?", "p2").Error, row.Colour, row.Name}, err
	}, []any{true, error(nil), "red", "lamp"})
	check("a default of a new column", func() (any, error) {
		err := db.Create(&widened{Code: "p9"}).Error
		row := widened{}
		return []any{db.First(&row, "code = ?", "p9").Error, row.Colour}, err
	}, []any{error(nil), "red"})
	check("rename a column", func() (any, error) {
		err := migrator.RenameColumn(&widened{}, "colour", "color")
		return []bool{migrator.HasColumn(&widened{}, "color"), migrator.HasColumn("products", "colour")}, err
	}, []bool{true, false})
	check("drop a column", func() (any, error) {
		return migrator.HasColumn("products", "color"), migrator.DropColumn("products", "color")
	}, true)
	check("a column gets a default", func() (any, error) {
		type Product struct {
			Name string `gorm:"size:200;default:none"`
		}
		return nil, migrator.AlterColumn(&Product{}, "Name")
	}, nil)
	check("a column becomes shorter", func() (any, error) {
		type Language struct {
			Name string `gorm:"size:40"`
		}
		return nil, migrator.AlterColumn(&Language{}, "Name")
	}, nil)
	check("an index can be made and dropped", func() (any, error) {
		type User struct {
			Email string `gorm:"index:by_email"`
		}
		made := migrator.CreateIndex(&User{}, "by_email")
		there := migrator.HasIndex(&User{}, "by_email")
		dropped := migrator.DropIndex(&User{}, "by_email")
		return []bool{there, migrator.HasIndex(&User{}, "by_email")}, errors.Join(made, dropped)
	}, []bool{true, false})
	check("an index of a model is there", func() (any, error) { return migrator.HasIndex(&User{}, "idx_users_name"), nil }, true)
	check("a constraint of a model is there", func() (any, error) { return migrator.HasConstraint(&User{}, "Orders"), nil }, true)
	check("a view", func() (any, error) {
		err := migrator.CreateView("rich", gorm.ViewOption{Replace: true, Query: db.Model(&Entry{}).Where("price > ?", 60)})
		var rows int64
		return []any{db.Table("rich").Count(&rows).Error, rows, migrator.DropView("rich")}, err
	}, []any{error(nil), int64(10), error(nil)})
	check("rename a table", func() (any, error) {
		err := migrator.RenameTable("places", "spots")
		return []bool{migrator.HasTable("spots"), migrator.HasTable("places")}, err
	}, []bool{true, false})
	check("drop tables", func() (any, error) {
		err := migrator.DropTable("spots", &Kinds{}, "never_there")
		return []bool{migrator.HasTable("spots"), migrator.HasTable(&Kinds{})}, err
	}, []bool{false, false})
}
