package file

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

// mediaTypes are the images that models take.
var mediaTypes = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

// image reads what is no text as an image, by its content.
func (t *tools) image(ctx context.Context, a readArgs, v readValue, cause error) (readValue, error) {
	size := int64(limits.FileImage + 1)
	data, err := t.files.ReadBytes(ctx, t.place(a.FilePath), &fs.ReadBytesOptions{Length: &size})
	if err != nil {
		return v, t.failure("read", a.FilePath, err)
	}
	media := http.DetectContentType(data)
	switch {
	case strings.HasPrefix(media, "text/"):
		return v, failed(fs.CodeNotText, cause, "read %s: it is text, but not in UTF-8. With bash, `iconv -f ENCODING -t UTF-8` makes it readable; `file` may tell the encoding", strconv.Quote(v.Path))
	case !mediaTypes[media]:
		return v, failed(fs.CodeNotText, cause, "read %s: it is not text (%s). With bash, `file` tells what it is, and `strings` or `xxd | head` shows what is in it", strconv.Quote(v.Path), media)
	case len(data) > limits.FileImage:
		return v, failed(fs.CodeTooLarge, cause, "read %s: the image (%s) has more than %s bytes, which is the most that models take; make a smaller copy of it and read that", strconv.Quote(v.Path), media, number(limits.FileImage))
	}
	v.Type, v.Offset = kindImage, 0
	v.MediaType, v.Bytes = media, int64(len(data))
	if agent, ok := t.agent(ctx); ok {
		kept, err := agent.Session().Attach(media, path.Base(v.Path), data)
		if err != nil {
			return v, fmt.Errorf("read %q: keep the image: %w", v.Path, err)
		}
		v.Attachment = &kept
		return v, nil
	}
	v.Data = base64.StdEncoding.EncodeToString(data)
	return v, nil
}

// image is what the model sees of an image: a line of text, and the image.
func (v readValue) image() ([]tool.Block, error) {
	image := map[string]any{"type": "image", "data": v.Data, "mimeType": v.MediaType}
	if v.Attachment != nil {
		image = map[string]any{"type": "image", "attachment": v.Attachment}
	}
	raw, err := json.Marshal(image)
	if err != nil {
		return nil, err
	}
	text := envelope(v.Path, kindImage, fmt.Sprintf("(%s, %s bytes)", v.MediaType, number(int(v.Bytes))))
	return []tool.Block{tool.TextBlock(text), {Type: "image", Raw: raw}}, nil
}
