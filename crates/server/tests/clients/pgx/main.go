// pgx: values, pipelines, blocks, COPY in binary, a pool, errors.
//
// Usage: pgx PORT      (scripts/clients.sh builds it, starts the server and calls this)
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var ctx = context.Background()

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func same(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("found %v, expected %v", found, expected))
	}
}

func fails(state string, err error) {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		panic(fmt.Sprintf("no error %s, but %v", state, err))
	}
	same(said.Code, state)
}

func values(c *pgx.Conn) {
	_, err := c.Exec(ctx, `CREATE TABLE v (id int PRIMARY KEY, b boolean, i8 bigint, f8 float8,
		t text, y bytea, tz timestamptz, u uuid, j jsonb)`)
	must(err)
	at := time.Date(2024, 1, 2, 3, 4, 5, 678000000, time.UTC)
	uuid := [16]byte{0x12, 0x34, 15: 0x78}
	for id := 1; id <= 3; id++ {
		_, err = c.Exec(ctx, "INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)", id, true,
			int64(1)<<62, -0.1, "it's \u20ac", []byte{0, 255, 7}, at, uuid, map[string]any{"a": nil})
		must(err)
	}
	var b bool
	var i8 int64
	var f8 float64
	var t string
	var y []byte
	var tz time.Time
	var u [16]byte
	var j map[string]any
	row := c.QueryRow(ctx, "SELECT b, i8, f8, t, y, tz, u, j FROM v WHERE id = $1", 2)
	must(row.Scan(&b, &i8, &f8, &t, &y, &tz, &u, &j))
	same([]any{b, i8, f8, t, y, u, j}, []any{true, int64(1) << 62, -0.1, "it's \u20ac",
		[]byte{0, 255, 7}, uuid, map[string]any{"a": nil}})
	same(tz.UTC(), at)
	var ids []int32
	must(c.QueryRow(ctx, "SELECT array_agg(id) FROM v WHERE id = ANY($1)", []int32{1, 3}).Scan(&ids))
	same(ids, []int32{1, 3})
}

func pipelines(c *pgx.Conn) {
	_, err := c.Exec(ctx, "CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL)")
	must(err)
	batch := &pgx.Batch{}
	for id := range 200 {
		batch.Queue("INSERT INTO a VALUES ($1, $2)", id, id)
	}
	batch.Queue("SELECT sum(n) FROM a")
	results := c.SendBatch(ctx, batch)
	for range 200 {
		tag, err := results.Exec()
		must(err)
		same(tag.RowsAffected(), int64(1))
	}
	var sum int64
	must(results.QueryRow().Scan(&sum))
	must(results.Close())
	same(sum, int64(19900))
	// One that fails takes all of its batch with it.
	batch = &pgx.Batch{}
	batch.Queue("INSERT INTO a VALUES (1000, 1)")
	batch.Queue("INSERT INTO a VALUES (1, 1)")
	fails("23505", c.SendBatch(ctx, batch).Close())
	must(c.QueryRow(ctx, "SELECT count(*) FROM a").Scan(&sum))
	same(sum, int64(200))
}

func blocks(c *pgx.Conn) {
	_, err := c.Exec(ctx, "CREATE TABLE a (id int PRIMARY KEY, n int CHECK (n > 0))")
	must(err)
	must(pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO a VALUES (1, 1)"); err != nil {
			return err
		}
		fails("23514", pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error {
			_, err := inner.Exec(ctx, "INSERT INTO a VALUES (2, 0)")
			return err
		}))
		_, err := tx.Exec(ctx, "INSERT INTO a VALUES (3, 3)")
		return err
	}))
	rows, err := c.Query(ctx, "SELECT id FROM a ORDER BY id")
	must(err)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	must(err)
	same(ids, []int{1, 3})
	_, err = c.Exec(ctx, "SELECT * FROM nothing")
	fails("42P01", err)
	// A plan that is kept meets another table.
	_, err = c.Exec(ctx, "ALTER TABLE a ADD COLUMN t text DEFAULT 'new'")
	must(err)
	var id, n int
	var t string
	must(c.QueryRow(ctx, "SELECT * FROM a WHERE id = $1", 1).Scan(&id, &n, &t))
	same(t, "new")
}

func copies(c *pgx.Conn) {
	_, err := c.Exec(ctx, "CREATE TABLE a (id bigint PRIMARY KEY, t text, at timestamptz)")
	must(err)
	now := time.Now().UTC().Truncate(time.Microsecond)
	count, err := c.CopyFrom(ctx, pgx.Identifier{"a"}, []string{"id", "t", "at"},
		pgx.CopyFromSlice(20000, func(id int) ([]any, error) {
			return []any{int64(id), fmt.Sprint("row ", id), now}, nil
		}))
	must(err)
	same(count, int64(20000))
	var sum int64
	var at time.Time
	must(c.QueryRow(ctx, "SELECT sum(id), max(at) FROM a").Scan(&sum, &at))
	same(sum, int64(199990000))
	same(at.UTC(), now)
	_, err = c.CopyFrom(ctx, pgx.Identifier{"a"}, []string{"id"}, pgx.CopyFromRows([][]any{{int64(7)}}))
	fails("23505", err)
}

func pool(port string) {
	pool, err := pgxpool.New(ctx, "postgres://nvcaracal@127.0.0.1:"+port+"/nvcaracal?pool_max_conns=8")
	must(err)
	defer pool.Close()
	_, err = pool.Exec(ctx, "CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a VALUES (1, 0)")
	must(err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				_, err := pool.Exec(ctx, "UPDATE a SET n = n + 1 WHERE id = $1", 1)
				must(err)
			}
		})
	}
	all.Wait()
	var n int
	must(pool.QueryRow(ctx, "SELECT n FROM a").Scan(&n))
	same(n, 400)
}

func main() {
	port := os.Args[1]
	tests := []struct {
		name string
		run  func(*pgx.Conn)
	}{
		{"values come back as they went", values},
		{"pipelines", pipelines},
		{"blocks and plans", blocks},
		{"COPY in binary", copies},
		{"a pool", func(*pgx.Conn) { pool(port) }},
	}
	for _, test := range tests {
		c, err := pgx.Connect(ctx, "postgres://nvcaracal@127.0.0.1:"+port+"/nvcaracal")
		must(err)
		_, err = c.Exec(ctx, "DROP TABLE IF EXISTS a, v")
		must(err)
		test.run(c)
		must(c.Close(ctx))
		fmt.Println("ok:", test.name)
	}
}
