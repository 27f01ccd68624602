// GORM: AutoMigrate, a second start that changes nothing, CRUD with relations, blocks.
//
// Usage: gorm PORT      (scripts/applications.sh builds it, starts the server and calls this)
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Person struct {
	gorm.Model
	Name   string         `gorm:"size:40;not null;default:x;index:person_by_name,priority:1;comment:a name"`
	Email  *string        `gorm:"uniqueIndex"`
	Credit float64        `gorm:"type:numeric(10,2);default:0;check:few,credit < 1000"`
	About  map[string]any `gorm:"serializer:json;type:jsonb"`
	Born   *time.Time     `gorm:"type:date;index:person_by_name,priority:2,sort:desc"`
	IsIn   bool           `gorm:"default:true"`
	Token  string         `gorm:"type:uuid;default:gen_random_uuid()"`
	Raw    []byte
	Visits []Visit
	Groups []Group `gorm:"many2many:person_groups"`
}

type Visit struct {
	ID       int64 `gorm:"primaryKey"`
	PersonID uint  `gorm:"not null"`
	Person   Person
	Place    string  `gorm:"type:varchar(20)"`
	Score    float64 `gorm:"index:visit_part,unique,where:score > 5"`
}

type Group struct {
	ID    uint
	Label string `gorm:"unique"`
}

// Wider is Group with more.
type Wider struct {
	ID    uint
	Label string `gorm:"unique;size:80"`
	Note  string `gorm:"not null;default:none"`
}

func (Wider) TableName() string { return "groups" }

// texts keeps the statements that are run.
type texts struct {
	logger.Interface
	said []string
}

func (t *texts) LogMode(logger.LogLevel) logger.Interface { return t }

func (t *texts) Trace(_ context.Context, _ time.Time, sql func() (string, int64), _ error) {
	text, _ := sql()
	t.said = append(t.said, text)
}

func same(found, expected any) error {
	if !reflect.DeepEqual(found, expected) {
		return fmt.Errorf("%v instead of %v", found, expected)
	}
	return nil
}

func step(name string, run func() error) {
	if err := run(); err != nil {
		said, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Printf("failed %s: %s\n", name, said)
		return
	}
	fmt.Println("ok", name)
}

func main() {
	heard := &texts{Interface: logger.Discard}
	options := &gorm.Config{Logger: heard, TranslateError: true}
	url := "postgres://nvcaracal@127.0.0.1:" + os.Args[1] + "/nvcaracal"
	db, err := gorm.Open(postgres.Open(url), options)
	if err != nil {
		fmt.Println("failed open:", err)
		os.Exit(1)
	}
	all := []any{&Person{}, &Visit{}, &Group{}}
	step("migrate", func() error { return db.AutoMigrate(all...) })
	step("a second start changes nothing", func() error {
		heard.said = nil
		if err := db.AutoMigrate(all...); err != nil {
			return err
		}
		for _, text := range heard.said {
			if strings.HasPrefix(text, "ALTER") || strings.HasPrefix(text, "CREATE") {
				return errors.New(text)
			}
		}
		return nil
	})
	step("a changed model", func() error {
		if err := db.AutoMigrate(&Wider{}); err != nil {
			return err
		}
		return same(db.Migrator().HasColumn(&Wider{}, "note"), true)
	})
	step("the migrator", func() error {
		m := db.Migrator()
		columns, err := m.ColumnTypes(&Person{})
		if err != nil {
			return err
		}
		length, _ := columns[4].Length()
		comment, _ := columns[4].Comment()
		indexes, err := m.GetIndexes(&Visit{})
		if err != nil {
			return err
		}
		return same([]any{length, comment, len(indexes), m.HasConstraint(&Person{}, "few"),
			m.HasIndex(&Person{}, "person_by_name")}, []any{int64(40), "a name", 1, true, true})
	})
	crud(db)
	blocks(db)
	step("columns renamed, dropped", func() error {
		m := db.Migrator()
		if err := m.RenameColumn(&Group{}, "label", "word"); err != nil {
			return err
		}
		if err := m.AlterColumn(&Visit{}, "Place"); err != nil {
			return err
		}
		return m.DropColumn(&Group{}, "word")
	})
	step("drop", func() error { return db.Migrator().DropTable("person_groups", &Visit{}, &Group{}, &Person{}) })
}

func crud(db *gorm.DB) {
	mail := "a@b"
	step("create with relations", func() error {
		ada := Person{Name: "Ada", Email: &mail, About: map[string]any{"a": 1.0}, Raw: []byte{0, 255},
			Visits: []Visit{{Place: "here", Score: 1}, {Place: "there", Score: 7}},
			Groups: []Group{{Label: "red"}}}
		if err := db.Create(&ada).Error; err != nil {
			return err
		}
		return same([]any{ada.ID, len(ada.Token), ada.Visits[1].ID}, []any{uint(1), 36, int64(2)})
	})
	step("preload and joins", func() error {
		var found Person
		if err := db.Preload(clause.Associations).First(&found, "name ILIKE ?", "ad%").Error; err != nil {
			return err
		}
		var visits []Visit
		if err := db.Joins("Person").Where("score > ?", 5).Find(&visits).Error; err != nil {
			return err
		}
		return same([]any{len(found.Visits), len(found.Groups), found.About["a"], visits[0].Person.Name},
			[]any{2, 1, 1.0, "Ada"})
	})
	step("upsert", func() error {
		bea := Person{Name: "Bea", Email: &mail}
		return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}},
			DoUpdates: clause.AssignmentColumns([]string{"name"})}).Create(&bea).Error
	})
	step("batches", func() error {
		groups := make([]Group, 500)
		for n := range groups {
			groups[n].Label = fmt.Sprint("g", n)
		}
		if err := db.CreateInBatches(groups, 100).Error; err != nil {
			return err
		}
		var count int64
		seen := 0
		db.Model(&Group{}).Count(&count)
		var page []Group
		err := db.FindInBatches(&page, 200, func(*gorm.DB, int) error { seen += len(page); return nil }).Error
		return errors.Join(err, same([]any{count, seen}, []any{int64(501), 501}))
	})
	step("FirstOrCreate, updates, expressions", func() error {
		var group Group
		db.Where(Group{Label: "red"}).FirstOrCreate(&group)
		err := db.Model(&Visit{}).Where("id = ?", 1).Update("score", gorm.Expr("score + ?", 2)).Error
		var visit Visit
		db.Clauses(clause.Returning{}).Model(&visit).Where("id = 1").Updates(map[string]any{"place": "new"})
		return errors.Join(err, same([]any{group.ID, visit.Score, visit.Place}, []any{uint(1), 3.0, "new"}))
	})
	step("groups", func() error {
		var rows []struct {
			Name string
			N    int64
		}
		err := db.Model(&Person{}).Select("people.name, count(*) AS n").
			Joins("JOIN visits ON visits.person_id = people.id").Group("people.name").
			Having("count(*) > ?", 1).Scan(&rows).Error
		return errors.Join(err, same(fmt.Sprint(rows), "[{Bea 2}]"))
	})
	step("soft deletion", func() error {
		cy := Person{Name: "Cy"}
		db.Create(&cy)
		err := db.Delete(&cy).Error
		var kept, all int64
		db.Model(&Person{}).Count(&kept)
		db.Unscoped().Model(&Person{}).Count(&all)
		return errors.Join(err, same([]int64{kept, all}, []int64{1, 2}))
	})
	step("a key that is taken", func() error {
		err := db.Create(&Group{Label: "red"}).Error
		return same(errors.Is(err, gorm.ErrDuplicatedKey), true)
	})
	step("a key that is missing", func() error {
		err := db.Create(&Visit{PersonID: 999}).Error
		return same(errors.Is(err, gorm.ErrForeignKeyViolated), true)
	})
}

func blocks(db *gorm.DB) {
	step("transactions with savepoints", func() error {
		err := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Group{Label: "kept"}).Error; err != nil {
				return err
			}
			_ = tx.Transaction(func(inner *gorm.DB) error {
				inner.Create(&Group{Label: "gone"})
				return errors.New("no")
			})
			return nil
		})
		var labels []string
		db.Model(&Group{}).Where("label IN ?", []string{"kept", "gone"}).Pluck("label", &labels)
		return errors.Join(err, same(labels, []string{"kept"}))
	})
	step("a lock", func() error {
		return db.Transaction(func(tx *gorm.DB) error {
			var person Person
			return tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).First(&person).Error
		})
	})
}
