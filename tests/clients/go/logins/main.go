// Logins of go-sql-driver: logins PORT CA USER:PASSWORD:WAY ...
//
// WAY is plain (no TLS) or tls (the server's certificate is checked against CA, and its name). Prints a line per login: the cipher, -
// for none, or the number of the error.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
)

func main() {
	port, ca := os.Args[1], os.Args[2]
	pem, err := os.ReadFile(ca)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	if err := mysql.RegisterTLSConfig("checked", &tls.Config{RootCAs: roots, ServerName: "localhost"}); err != nil {
		panic(err)
	}
	for _, text := range os.Args[3:] {
		one := strings.Split(text, ":")
		config := mysql.NewConfig()
		config.User, config.Passwd, config.Net, config.Addr = one[0], one[1], "tcp", "localhost:"+port
		if one[2] == "tls" {
			config.TLSConfig = "checked"
		}
		fmt.Println(login(config))
	}
}

func login(config *mysql.Config) string {
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		panic(err)
	}
	defer db.Close()
	var name, cipher string
	if err := db.QueryRow("SHOW STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher); err != nil {
		var refused *mysql.MySQLError
		if errors.As(err, &refused) {
			return fmt.Sprint(refused.Number)
		}
		return err.Error()
	}
	if cipher == "" {
		return "-"
	}
	return cipher
}
