package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"microtome": main})
}

// TestScripts runs the program as users do. The scripts add these commands:
//
//	exits CODE PROGRAM ...   runs it and checks its exit code
//	get SOCKET PATH STATUS   asks a server on a Unix socket, into the file "body"
//	size FILE WxH            checks the size of a picture
//	doctored FILE TO         takes out of the doctor's JSON what is this host's
//
// and, with cgo, the variables FAKE and FAKE_AMD: folders of NVIDIA's and AMD's fake
// GPU libraries.
func TestScripts(t *testing.T) {
	fakes, amd := fakeLibraries(t, "nvidia"), fakeLibraries(t, "amd")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/cache")
			env.Setenv("FAKE", fakes)
			env.Setenv("FAKE_AMD", amd)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"get": scriptGet, "size": scriptSize, "exits": scriptExits, "doctored": scriptDoctored,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "cgo" {
				return fakes != "", nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("%v ended with %s, want %s", args[1:], code, args[0])
	}
}

func scriptGet(ts *testscript.TestScript, neg bool, args []string) {
	socket := ts.MkAbs(args[0])
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}
	var status int
	var body []byte
	var err error
	for range 200 { // the server may still be starting, or reading its folders
		status, body, err = fetch(client, "http://localhost"+args[1])
		if err == nil && !bytes.Contains(body, []byte(`"scanning":true`)) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body"), body, 0o644))
	if strconv.Itoa(status) != args[2] {
		ts.Fatalf("%s: %d, want %s\n%s", args[1], status, args[2], body)
	}
}

func fetch(client *http.Client, url string) (int, []byte, error) {
	resp, err := client.Get(url)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

func scriptSize(ts *testscript.TestScript, neg bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	ts.Check(err)
	if got := strconv.Itoa(c.Width) + "x" + strconv.Itoa(c.Height); got != args[1] {
		ts.Fatalf("%s is %s, want %s", args[0], got, args[1])
	}
}
