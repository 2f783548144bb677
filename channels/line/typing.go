package line

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/line/line-bot-sdk-go/v8/linebot/messaging_api"

	"botd/channels"
)

const (
	// loadingSeconds is the longest time that LINE shows the loading animation; a new call sets it anew,
	// and the bot's next message ends it (Messaging API reference, Display a loading animation).
	loadingSeconds = 60
	typingEvery    = 50 * time.Second
)

// Typing shows the loading animation. LINE has none in groups and rooms; there it does nothing.
func (a *Adapter) Typing(ctx context.Context, to channels.Address) error {
	if to.Kind != channels.Direct {
		return nil
	}
	if !isID(to.Room, 'U') {
		return &channels.Error{Kind: channels.Permanent, Err: errors.New("show loading animation: not a user ID of LINE")}
	}
	r := a.api.call(ctx, "show loading animation", func(api *messaging_api.MessagingApiAPI) (*http.Response, error) {
		res, _, err := api.ShowLoadingAnimationWithHttpInfo(&messaging_api.ShowLoadingAnimationRequest{
			ChatId: to.Room, LoadingSeconds: loadingSeconds,
		})
		return res, err
	})
	if !r.accepted() {
		return r.error(kindOf(r))
	}
	return nil
}
