package admin_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/go-cmp/cmp"

	"botd/cmd/botd/internal/admin"
)

// document is the description of the API.
func document(t *testing.T) *openapi3.T {
	t.Helper()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// judge is a transport that judges requests and answers by the description: what it allows is what the API
// answers, and what the API takes is what it allows.
type judge struct {
	t      *testing.T
	next   http.RoundTripper
	router routers.Router
}

func newJudge(t *testing.T, next http.RoundTripper) *judge {
	t.Helper()
	router, err := gorillamux.NewRouter(document(t))
	if err != nil {
		t.Fatal(err)
	}
	return &judge{t, next, router}
}

func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	body := take(&r.Body)
	in := &openapi3filter.RequestValidationInput{Request: r, Options: &openapi3filter.Options{}}
	var missing, refused error
	if in.Route, in.PathParams, missing = j.router.FindRoute(r); missing == nil {
		refused = openapi3filter.ValidateRequest(r.Context(), in)
	}
	if body != nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	res, err := j.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	what := r.Method + " " + r.URL.RequestURI()
	ok := res.StatusCode < 300
	switch {
	case missing != nil:
		// The router of the validator does not see through an escaped slash.
		if ok && !strings.Contains(r.URL.EscapedPath(), "%") {
			j.t.Errorf("%s is answered, and not described: %v", what, missing)
		}
		return res, nil
	case refused != nil && ok:
		j.t.Errorf("%s is answered, and the description forbids it: %v", what, refused)
	}
	kind := res.Header.Get("Content-Type")
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: res.StatusCode, Header: res.Header}
	if !strings.HasSuffix(kind, "json") {
		out.Options = &openapi3filter.Options{ExcludeResponseBody: true}
	} else {
		out.SetBodyBytes(take(&res.Body))
	}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		j.t.Errorf("%s: the answer of type %s is not as described: %v", what, kind, err)
	}
	return res, nil
}

// take returns a body and puts it back.
func take(body *io.ReadCloser) []byte {
	if *body == nil {
		return nil
	}
	b, _ := io.ReadAll(*body)
	*body = io.NopCloser(bytes.NewReader(b))
	return b
}

func TestDescriptionIsValidAndWhole(t *testing.T) {
	t.Parallel()
	doc := document(t)
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Fatal(err)
	}
	described := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			described[method+" "+path] = op.OperationID
		}
	}
	for _, op := range admin.New(admin.Options{}).Operations() {
		id, ok := described[op[0]+" "+op[1]]
		if !ok {
			t.Errorf("%s %s is not described", op[0], op[1])
		}
		if op[2] != "" && op[2] != id {
			t.Errorf("%s %s is %s in the audit and %s in the description", op[0], op[1], op[2], id)
		}
		delete(described, op[0]+" "+op[1])
	}
	for op := range described {
		t.Errorf("%s is described, and does not exist", op)
	}
}

func TestDescriptionIsServed(t *testing.T) {
	t.Parallel()
	h := open(t)
	status, answer, _ := h.raw("GET", "/v1/openapi.json", "")
	text, err := os.ReadFile("openapi.json")
	if err != nil || status != http.StatusOK || answer != string(text) {
		t.Errorf("answer %d with %d bytes; %v", status, len(answer), err)
	}
}

func TestCodesAndPathsAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "admin.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	var described []admin.Code
	for _, code := range document(t).Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		described = append(described, admin.Code(code.(string)))
	}
	slices.Sort(described)
	if diff := cmp.Diff(admin.Codes(), described); diff != "" {
		t.Errorf("codes in the description (-want +got):\n%s", diff)
	}
	for _, code := range admin.Codes() {
		if !strings.Contains(page, "`"+string(code)+"`") {
			t.Errorf("docs/admin.md does not tell of the code %s", code)
		}
	}
	for _, op := range admin.New(admin.Options{}).Operations() {
		path := op[1]
		if i := strings.Index(path, "}/drop"); i > 0 {
			path = "…/drop"
		}
		if !strings.Contains(page, path) {
			t.Errorf("docs/admin.md does not tell of %s %s", op[0], op[1])
		}
	}
}
