package work

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/llm/keys"
)

// say runs a command line with an input, and returns all it says.
func say(t *testing.T, input string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs buffer
	err = do(t.Context(), command.Streams{In: io.NopCloser(strings.NewReader(input)), Out: &out, Err: &errs}, args...)
	return out.String(), errs.String(), err
}

// TestAuthSetRefuses: what no request could use is not kept, and does not show.
func TestAuthSetRefuses(t *testing.T) {
	const url = "without a name or a password in it"
	for _, c := range []struct {
		name, input, url string
		want             string
	}{
		{"control", "hunter2\x1b[8m", "", "characters that no key has"},
		{"zero", "hunter2\x00", "", "characters that no key has"},
		{"noUTF8", "hunter2\xff", "", "characters that no key has"},
		{"beyondASCII", "hunter2é", "", "characters that no key has"},
		{"spaces", "hunter2 x", "", "without spaces"},
		{"password", "sk-1", "http://me:hunter2@127.0.0.1/v1", url},
		{"name", "sk-1", "http://hunter2@127.0.0.1/v1", url},
		{"scheme", "sk-1", "hunter2:8000", url},
	} {
		t.Run(c.name, func(t *testing.T) {
			home(t, "")
			args := []string{"auth", "set", "openai"}
			if c.url != "" {
				args = append(args, "--base-url", c.url)
			}
			out, errs, err := say(t, c.input, args...)
			if err == nil || command.Status(err) != command.Usage || !strings.Contains(err.Error(), c.want) || strings.Contains(out+errs+err.Error(), "hunter2") {
				t.Errorf("%v, %q, %q; want %q", err, out, errs, c.want)
			}
			if _, err := os.Stat(filepath.Join(os.Getenv("DSH_HOME"), keys.File)); !os.IsNotExist(err) {
				t.Errorf("something was kept: %v", err)
			}
		})
	}
}

// TestPasswordInURL: one that is there already is refused where it is used, with the
// place, and shows nowhere.
func TestPasswordInURL(t *testing.T) {
	home(t, "")
	dir := os.Getenv("DSH_HOME")
	t.Setenv("DEEPSEEK_BASE_URL", "http://me:hunter2@127.0.0.1:1")
	if err := (keys.Store{Home: dir}).Set("openai", keys.NewKey("sk-1"), "http://me:hunter2@127.0.0.1:1/v1"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, keys.File)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--model", "openai", "x"}, file},
		{[]string{"run", "--model", "deepseek", "x"}, "DEEPSEEK_BASE_URL"},
		{[]string{"auth", "set", "openai"}, "--base-url than the one in " + file},
		{[]string{"models"}, "server: http://xxxxx@127.0.0.1:1/v1"},
		{[]string{"models", "--json"}, `"baseURL":"http://xxxxx@127.0.0.1:1/v1"`},
	} {
		t.Run(strings.Join(c.args, "_"), func(t *testing.T) {
			out, errs, err := say(t, "sk-2", c.args...)
			all := out + errs
			if err != nil {
				all += err.Error()
			}
			if !strings.Contains(all, c.want) || !strings.Contains(all, "without a name or a password in it") || strings.Contains(all, "hunter2") {
				t.Errorf("it says %s; want %q", all, c.want)
			}
		})
	}
}

// TestModelsBrokenFile: what is wrong with the file of keys is said once.
func TestModelsBrokenFile(t *testing.T) {
	home(t, "")
	dir := os.Getenv("DSH_HOME")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, keys.File), []byte("- sk-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := say(t, "", "models")
	if err != nil || strings.Count(out, keys.File) != 1 || !strings.Contains(out, "openai: as for deepseek\n") {
		t.Errorf("%v, %s", err, out)
	}
}
