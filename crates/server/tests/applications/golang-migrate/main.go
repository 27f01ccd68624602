// golang-migrate: up, again, a migration that fails, down, drop, with both of its drivers.
//
// Usage: golang-migrate PORT      (scripts/applications.sh builds it, starts the server and calls this)
package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	_ "github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"
)

//go:embed migrations
var migrations embed.FS

func step(name string, run func() error) {
	if err := run(); err != nil {
		said, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Printf("failed %s: %s\n", name, said)
		return
	}
	fmt.Println("ok", name)
}

func open(url string) (*migrate.Migrate, error) {
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	return migrate.NewWithSourceInstance("iofs", source, url)
}

// with runs something on a migrator of its own, as a start of a program does.
func with(url string, run func(*migrate.Migrate) error) func() error {
	return func() error {
		m, err := open(url)
		if err != nil {
			return err
		}
		defer m.Close()
		return run(m)
	}
}

func steps(kind, url string) {
	step(kind+": up to two", with(url, func(m *migrate.Migrate) error { return m.Migrate(2) }))
	step(kind+": a second start changes nothing", with(url, func(m *migrate.Migrate) error {
		if err := m.Migrate(2); !errors.Is(err, migrate.ErrNoChange) {
			return fmt.Errorf("%v instead of no change", err)
		}
		return nil
	}))
	step(kind+": the version", with(url, func(m *migrate.Migrate) error {
		version, dirty, err := m.Version()
		if err == nil && (version != 2 || dirty) {
			return fmt.Errorf("version %d, dirty %v", version, dirty)
		}
		return err
	}))
	step(kind+": a migration that fails", with(url, func(m *migrate.Migrate) error {
		if err := m.Up(); err == nil {
			return errors.New("it does not fail")
		}
		version, dirty, err := m.Version()
		if err == nil && (version != 3 || !dirty) {
			return fmt.Errorf("version %d, dirty %v", version, dirty)
		}
		return errors.Join(err, m.Force(2))
	}))
	step(kind+": down", with(url, func(m *migrate.Migrate) error { return m.Down() }))
	step(kind+": drop", with(url, func(m *migrate.Migrate) error { return m.Drop() }))
}

func main() {
	at := "://nvcaracal@127.0.0.1:" + os.Args[1] + "/nvcaracal?sslmode=disable"
	steps("lib/pq", "postgres"+at)
	steps("pgx", "pgx5"+at)
}
