// Runs those tests of go-sql-driver that ask a server, each in a process of its own, because some end the process when they fail.
package main

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	_ "github.com/go-sql-driver/mysql"
)

const (
	longestReason = 500
	// A test is ended after this time. TestIssue1567 opens 3000 connections with TLS.
	patience = "300s"
	// The first dials an address of the internet, and the second expects the rows of a UNION in the order of its parts.
	leftOut = "^(TestConnectorReturnsTimeout|TestStmtMultiRows)$"
)

var (
	verdict = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\w+)`)
	place   = regexp.MustCompile(`^\w+_test\.go:\d+: `)
)

func main() {
	if err := createDatabase(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	missed := false
	for _, test := range testsOfServers() {
		output := run(os.Getenv("SUITE_PORT"), "-test.run", "^"+test+"$")
		found := verdict.FindStringSubmatch(output)
		switch {
		case found != nil && found[1] == "PASS":
			fmt.Println("ok " + test)
		case found != nil && found[1] == "SKIP":
			fmt.Fprintf(os.Stderr, "%s is skipped: %s\n", test, reason(output))
		default:
			missed = true
			fmt.Printf("MISS %s: %s\n", test, reason(output))
		}
	}
	if missed {
		os.Exit(1)
	}
}

func createDatabase() error {
	db, err := sql.Open("mysql", "root:@tcp(127.0.0.1:"+os.Getenv("SUITE_PORT")+")/")
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec("CREATE DATABASE gotest")
	return err
}

// testsOfServers returns the tests that are skipped without a server.
func testsOfServers() []string {
	tests := []string{}
	for _, found := range verdict.FindAllStringSubmatch(run("1", "-test.skip", leftOut), -1) {
		if found[1] == "SKIP" {
			tests = append(tests, found[2])
		}
	}
	return tests
}

func run(port string, arguments ...string) string {
	arguments = append(arguments, "-test.v", "-test.timeout", patience)
	program := exec.Command(filepath.Join(os.Getenv("SUITE_HOME"), "driver.test"), arguments...)
	program.Env = append(os.Environ(), "MYSQL_TEST_ADDR=127.0.0.1:"+port)
	output, _ := program.CombinedOutput()
	return string(output)
}

// reason returns what the first lines of a test that failed say.
func reason(output string) string {
	lines := []string{}
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(line)
		if place.MatchString(line) || strings.HasPrefix(line, "panic: ") {
			lines = append(lines, place.ReplaceAllString(line, ""))
		}
	}
	text := strings.Join(strings.Fields(strings.Join(lines, "; ")), " ")
	if text == "" {
		text = "no verdict"
	}
	return text[:min(len(text), longestReason)]
}
