package main

import (
	"time"

	"gorm.io/gorm"
)

type Company struct {
	ID   uint
	Name string `gorm:"size:50"`
}

type User struct {
	gorm.Model
	Name      string `gorm:"size:50;index"`
	Email     string `gorm:"size:100"`
	Age       int
	Score     float64
	Amount    string `gorm:"type:decimal(10,2)"`
	Active    bool
	Birthday  *time.Time
	Note      *string
	Settings  map[string]any `gorm:"serializer:json"`
	CompanyID *uint
	Company   Company
	Orders    []Order
	Profile   Profile
	Languages []Language `gorm:"many2many:user_languages"`
}

type Order struct {
	ID     uint
	UserID uint `gorm:"index"`
	Title  string
	Price  float64
}

// Entry belongs to nothing that has a table.
type Entry struct {
	ID    uint
	Owner uint `gorm:"index"`
	Title string
	Price float64
}

type Profile struct {
	ID     uint
	UserID uint
	City   string
}

type Language struct {
	Code string `gorm:"primaryKey;size:8"`
	Name string
}

// Product has a key that the application gives, and a hook.
type Product struct {
	Code    string `gorm:"primaryKey;size:20"`
	Name    string `gorm:"size:50"`
	Stock   int
	Version int `gorm:"default:1"`
}

func (product *Product) BeforeCreate(*gorm.DB) error {
	if product.Name == "" {
		product.Name = "unnamed " + product.Code
	}
	return nil
}

// Place has a key of two columns.
type Place struct {
	Shelf int `gorm:"primaryKey;autoIncrement:false"`
	Level int `gorm:"primaryKey;autoIncrement:false"`
	Goods string
}

// Kinds has a column of each kind that gorm has a type for.
type Kinds struct {
	ID      uint64
	Small   int8
	Medium  int16
	Plain   int32
	Big     int64
	Natural uint32
	Half    float32
	Text    string
	Fixed   string `gorm:"type:char(3)"`
	Long    string `gorm:"type:longtext"`
	Bytes   []byte
	Day     time.Time `gorm:"type:date"`
	Moment  time.Time `gorm:"precision:6"`
	Choice  string    `gorm:"type:enum('a','b');default:a"`
	Flag    *bool
	Unix    int64 `gorm:"autoCreateTime"`
}

func pointer[T any](value T) *T { return &value }
