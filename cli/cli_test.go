package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/limits"
)

// TestMain lets the test binary be its own worker, unless DSH_TEST_WORKER names
// another program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		os.Exit(runWorker())
	}
	if len(os.Args) > 1 && os.Args[1] == hiddenCommand {
		os.Exit(beHidden(os.Args[2:]))
	}
	command.Program = os.Getenv("DSH_TEST_WORKER")
	goleak.VerifyTestMain(m)
}

// hiddenCommand makes the test binary a process that has hidden its environment;
// with an argument one that has not.
const hiddenCommand = "__hidden"

// beHidden starts itself again and opens a file by its descriptor, as the program
// does, says how that went, and stays until its input ends.
func beHidden(args []string) int {
	if len(args) > 0 && args[0] == "child" {
		return 0
	}
	if len(args) == 0 {
		hideEnviron()
	}
	child := exec.Command("/proc/self/exe", hiddenCommand, "child")
	err := child.Run()
	if err == nil {
		_, err = os.ReadDir("/proc/self/fd/")
	}
	fmt.Println("ready", err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// buffer is a stream that keeps what is written.
type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

// runText runs one command line with an input and returns all it says.
func runText(t *testing.T, input string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs buffer
	status = run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader(input)), Out: &out, Err: &errs})
	return status, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		status int
		stderr string
	}{
		{"nothing", nil, 2, "say which command"},
		{"unknown", []string{"fly"}, 2, `there is no command "fly"; the commands are:`},
		{"near", []string{"versio"}, 2, `did you mean "version"`},
		{"flag", []string{"mcp", "--no"}, 2, "unknown flag: --no"},
		{"argument", []string{"mcp", "x"}, 2, `takes no arguments, got "x"`},
		{"duration_unit", []string{"mcp", "--call-timeout", "30"}, 2, "with its unit"},
		{"duration_low", []string{"mcp", "--vm-timeout=-1s"}, 2, "from 1ms to 1m0s"},
		{"memory", []string{"mcp", "--memory", "9999999"}, 2, "from 16 to 2048"},
		{"service", []string{"mcp", "--services", "fs,ftp"}, 2, `there is no service "ftp"; choose among bash, fs, kv, log, web, or none`},
		{"service_empty", []string{"tool", "--services", ""}, 2, "needs names"},
		{"service_none", []string{"tool", "--services", "none,fs"}, 2, "none stands alone"},
		{"root", []string{"mcp", "--root", "no/such"}, 2, "--root: there is no folder"},
		{"root_file", []string{"inspect", "--read-only-root", "cli_test.go"}, 2, "cli_test.go is no folder"},
		{"pass_env", []string{"mcp", "--pass-env", ""}, 2, "no name of a variable"},
		{"pass_env_pattern", []string{"mcp", "--pass-env", "GITHUB_*"}, 2, "no name of a variable"},
		{"permission", []string{"mcp", "--permission", "loose"}, 2, "choose ask, auto-edit, full or read-only"},
		{"rule", []string{"mcp", "--allow", "sh(x)"}, 2, `--allow: rule "sh(x)": there is no rule "sh"`},
		{"deny_rule", []string{"mcp", "--deny", "bash("}, 2, "--deny: rule"},
		{"audit_folder", []string{"mcp", "--audit", t.TempDir()}, 1, "open audit file"},
		{"help", []string{"mcp", "--help"}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := runText(t, "", tt.args...)
			if status != tt.status || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("status %d, %q; want %d, %q", status, stderr, tt.status, tt.stderr)
			}
			if tt.status != 0 && stdout != "" {
				t.Errorf("standard output %q", stdout)
			}
		})
	}
}

// TestFlagDefaults: the flags have the defaults of the limits' table.
func TestFlagDefaults(t *testing.T) {
	cmd := newMCP(command.Streams{})
	for name, want := range map[string]string{
		"vm-timeout":   limits.VMTimeout.String(),
		"call-timeout": limits.CallTimeout.String(),
		"memory":       "64",
		"with-call":    "false",
		"audit":        "",
		"permission":   "full",
	} {
		if f := cmd.Flags().Lookup(name); f == nil || f.DefValue != want {
			t.Errorf("--%s: %+v, want the default %s", name, f, want)
		}
	}
}

const handshake = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// TestMCP serves a client in process, to its end, with nothing left behind.
func TestMCP(t *testing.T) {
	status, stdout, stderr := runText(t, handshake, "mcp", "--with-call", "--services", "none")
	if status != 0 || stderr != "" {
		t.Errorf("status %d, standard error %q", status, stderr)
	}
	for _, want := range []string{`"id":1,"result"`, `"id":2,"result"`, `"cordis_call"`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %s in %s", want, stdout)
		}
	}
}

// TestMCPPermission: the mode binds what a client may have mounted; ask denies, since
// there is nobody to ask, and says how to allow.
func TestMCPPermission(t *testing.T) {
	script := handshake + `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"cordis_mount","arguments":{"code":"return { name: 'p', apply() {} }"}}}
`
	for name, tt := range map[string]struct {
		flags []string
		want  []string
	}{
		"full":      {nil, []string{"Temporary Plugin"}},
		"ask":       {[]string{"--permission", "ask"}, []string{"nobody to ask", "--allow 'mount'", "--permission full"}},
		"allowed":   {[]string{"--permission", "ask", "--allow", "mount"}, []string{"Temporary Plugin"}},
		"denied":    {[]string{"--deny", "mount"}, []string{"was denied by the rule mount"}},
		"read-only": {[]string{"--permission", "read-only"}, []string{"the permission mode is read-only"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := runText(t, script, append([]string{"mcp", "--services", "none"}, tt.flags...)...)
			for _, want := range tt.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("status %d: no %q in %s\n%s", status, want, stdout, stderr)
				}
			}
		})
	}
}

// TestMCPSignal: a cancelled context, as of a signal, ends the server in order.
func TestMCPSignal(t *testing.T) {
	in, hold := io.Pipe()
	defer hold.Close()
	out, wire := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	status := make(chan int, 1)
	var errs buffer
	go func() {
		status <- run(ctx, []string{"mcp", "--services", "none"}, command.Streams{In: in, Out: wire, Err: &errs})
	}()
	go io.WriteString(hold, handshake)
	got := make([]byte, 1)
	if _, err := io.ReadFull(out, got); err != nil { // it serves
		t.Fatal(err)
	}
	go io.Copy(io.Discard, out)
	began := time.Now()
	cancel()
	if s := <-status; s != 0 || errs.String() != "" {
		t.Errorf("status %d, standard error %q", s, errs.String())
	}
	if took := time.Since(began); took > limits.Shutdown {
		t.Errorf("it took %s to end", took)
	}
}

func TestAuditFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit.jsonl")
	for _, line := range []string{"one\n", "two\n"} {
		a, err := openAudit(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(a, line); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("file %q, %v", text, err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	none, err := openAudit("")
	if err != nil || none.Close() != nil {
		t.Error("no file is an error")
	}
}
