package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
)

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func home(t testing.TB, text string, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, File)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFind(t *testing.T) {
	const file = "deepseek:\n  key: sk-file\n  baseURL: http://file\nopen-router:\n  key: sk-router\n"
	for _, c := range []struct {
		name, provider string
		env            []string
		file           string
		key, url       string
		code           string
	}{
		{"environment", "deepseek", []string{"DEEPSEEK_API_KEY", " sk-env\n", "DEEPSEEK_BASE_URL", "http://env"}, file, "sk-env", "http://env", ""},
		{"environmentAndFile", "deepseek", []string{"DEEPSEEK_API_KEY", "sk-env"}, file, "sk-env", "http://file", ""},
		{"file", "deepseek", nil, file, "sk-file", "http://file", ""},
		{"nameWithDash", "open-router", []string{"OPEN_ROUTER_BASE_URL", "http://r"}, file, "sk-router", "http://r", ""},
		{"emptyVariable", "deepseek", []string{"DEEPSEEK_API_KEY", ""}, file, "sk-file", "http://file", ""},
		{"missing", "openai", nil, file, "", "", llm.CodeMissingCredential},
		{"emptyFile", "openai", nil, "", "", "", llm.CodeMissingCredential},
		{"odd", "openai", []string{"OPENAI_API_KEY", "sk-\x01"}, "", "", "", llm.CodeInvalidCredential},
		{"brokenFileNotNeeded", "openai", []string{"OPENAI_API_KEY", "sk-x"}, "a: [", "sk-x", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Store{Home: home(t, c.file, 0o600), Env: env(c.env...)}.Find(c.provider)
			code := ""
			var f *llm.Failure
			if errors.As(err, &f) {
				code = f.Code
			}
			if got.Key.Reveal() != c.key || got.BaseURL != c.url || code != c.code {
				t.Errorf("key %q, url %q, %v; want %q, %q, %s", got.Key.Reveal(), got.BaseURL, err, c.key, c.url, c.code)
			}
		})
	}
}

// TestBadFiles: a file that cannot be used is refused with what to do, and
// nothing of what is in it shows.
func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"groupCanRead", "deepseek:\n  key: sk-file\n", 0o640, "chmod 600"},
		{"othersCanRead", "deepseek:\n  key: sk-file\n", 0o604, "mode 0604"},
		{"syntax", "deepseek:\n  key: [sk-file\n", 0o600, "line"},
		{"list", "- sk-file\n", 0o600, "line 1"},
		{"keyAlone", "deepseek: sk-file\n", 0o600, "line 1"},
		{"unknownMember", "deepseek:\n  key: sk-file\n  apikey: sk-file\n", 0o600, "line 3"},
		{"alias", "a: &x\n  key: sk-file\ndeepseek: *x\n", 0o600, "line"},
		{"long", strings.Repeat("# sk-file\n", limits.LLMCredentials/10+1), 0o600, "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Store{Home: home(t, c.text, c.mode), Env: env()}
			_, err := s.Find("deepseek")
			var f *llm.Failure
			if !errors.As(err, &f) || f.Code != llm.CodeInvalidCredential || !strings.Contains(f.Message, c.want) || strings.Contains(f.Message, "sk-file") {
				t.Errorf("error %v, want %s with %q and without the key", err, llm.CodeInvalidCredential, c.want)
			}
			if err := s.Set("openai", NewKey("sk-new"), ""); err == nil {
				t.Error("the file was overwritten")
			}
		})
	}
}

// TestFrom: it is said where the key and the base URL were found, and without a
// key what else there is.
func TestFrom(t *testing.T) {
	s := Store{Home: home(t, "openai:\n  key: sk-file\n  baseURL: http://file\n", 0o600), Env: env("OPENAI_BASE_URL", "http://env")}
	file := filepath.Join(s.Home, File)
	if c, err := s.Find("openai"); err != nil || c.From != file || c.URLFrom != "OPENAI_BASE_URL" {
		t.Errorf("%+v, %v", c, err)
	}
	s.Env = env()
	if c, err := s.Find("openai"); err != nil || c.URLFrom != file {
		t.Errorf("%+v, %v", c, err)
	}
	_, err := s.Find("deepseek")
	for _, want := range []string{"set DEEPSEEK_API_KEY", "`dsh auth set deepseek`", "DEEPSEEK_BASE_URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

func TestShownURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:8000/v1":    "http://127.0.0.1:8000/v1",
		"https://user:hunter2@host/v": "https://xxxxx@host/v",
		"https://hunter2@host":        "https://xxxxx@host",
		"https://host/v1?key=hunter2": "https://host/v1?xxxxx",
		"https://u:hunter2%zz@host":   "(not usable)",
		"mailto:hunter2":              "mailto:xxxxx",
	} {
		if got := ShownURL(in); got != want {
			t.Errorf("%s shows as %s, want %s", in, got, want)
		}
	}
}

func TestUsable(t *testing.T) {
	for key, want := range map[string]bool{"sk-1": true, "": false, "a b": false, "a\x1b[8m": false, "a\x7f": false, "é": false, "a\xff": false} {
		if got := NewKey(key).Usable(); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
	if (Key{}).Usable() {
		t.Error("no key is usable")
	}
}

func TestSet(t *testing.T) {
	s := Store{Home: filepath.Join(t.TempDir(), "new"), Env: env()}
	for _, p := range []string{"openai", "deepseek"} {
		if err := s.Set(p, NewKey("sk-"+p), "http://"+p); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Set("openai", Key{}, ""); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Find("deepseek"); err != nil || c.Key.Reveal() != "sk-deepseek" || c.BaseURL != "http://deepseek" || c.From != filepath.Join(s.Home, File) {
		t.Errorf("%+v, %v", c, err)
	}
	if all, err := s.Providers(); err != nil || fmt.Sprint(all) != "[deepseek]" {
		t.Errorf("providers %v, %v", all, err)
	}
	info, err := os.Stat(filepath.Join(s.Home, File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Home, ".cred*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestKeyNeverShows: whatever prints a key, alone or inside something.
func TestKeyNeverShows(t *testing.T) {
	c := Credential{Key: NewKey("sk-secret")}
	js, _ := json.Marshal(c)
	ym, _ := yaml.Marshal(c)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "c", c, "k", c.Key)
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %s %q %x %d", c, c, c.Key, c.Key, c.Key, c.Key), string(js), string(ym), log.String(), fmt.Sprint(&c), fmt.Sprintf("%#v", &c)} {
		if strings.Contains(s, "secret") || strings.Contains(s, fmt.Sprintf("%x", "secret")) {
			t.Errorf("it shows in %s", s)
		}
	}
	if got := Variables("deepseek", "open-router"); fmt.Sprint(got) != "[DEEPSEEK_API_KEY OPEN_ROUTER_API_KEY]" {
		t.Errorf("variables %v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("deepseek:\n  key: sk-x\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 4096 {
			_, _ = parse("file", []byte(text))
		}
	})
}
