package linefake

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// The shapes of message objects (Messaging API reference, Message objects). Templates, imagemaps and Flex
// containers are looked at on their outside only.
var (
	commonShape = shape{
		"type":       must(anything),
		"quickReply": may(object(quickReply)),
		"sender":     may(object(sender)),
	}
	messageShapes = map[string]shape{
		"text":     {"text": must(str(5000)), "emojis": may(list(1, 20, emoji)), "quoteToken": may(str(1000))},
		"textV2":   {"text": must(textV2), "substitution": may(object(substitution)), "quoteToken": may(str(1000))},
		"sticker":  {"packageId": must(str(20)), "stickerId": must(str(20)), "quoteToken": may(str(1000))},
		"image":    {"originalContentUrl": must(https(5000)), "previewImageUrl": must(https(5000))},
		"video":    {"originalContentUrl": must(https(5000)), "previewImageUrl": must(https(5000)), "trackingId": may(str(100))},
		"audio":    {"originalContentUrl": must(https(5000)), "duration": must(number(1, 1e12))},
		"location": {"title": must(str(100)), "address": must(str(100)), "latitude": must(number(-90, 90)), "longitude": must(number(-180, 180))},
		"imagemap": {"baseUrl": must(https(2000)), "altText": must(str(1500)), "baseSize": must(anything), "actions": must(anything), "video": may(anything)},
		"template": {"altText": must(str(1500)), "template": must(object(template))},
		"flex":     {"altText": must(str(1500)), "contents": must(object(flex))},
		"coupon":   {"couponId": must(str(100)), "deliveryTag": may(str(30))},
	}
)

func quickReply(r *report, path string, obj map[string]any) {
	r.object(path, obj, shape{"items": must(list(1, 13, func(r *report, path string, obj map[string]any) {
		r.object(path, obj, shape{
			"type": must(oneOf("action")), "imageUrl": may(https(2000)), "action": must(object(action)),
		})
	}))})
}

func sender(r *report, path string, obj map[string]any) {
	r.object(path, obj, shape{"name": may(func(r *report, path string, v any) string {
		if s, is := v.(string); is && strings.Contains(strings.ToUpper(s), "LINE") {
			return "May not contain the word LINE"
		}
		return str(20)(r, path, v)
	}), "iconUrl": may(https(2000))})
}

func emoji(r *report, path string, obj map[string]any) {
	r.object(path, obj, shape{"index": must(number(0, 5000)), "productId": must(str(100)), "emojiId": must(str(100))})
}

func substitution(r *report, path string, obj map[string]any) {
	for key, v := range obj {
		o, is := v.(map[string]any)
		if !is {
			r.add(join(path, key), "Must be an object")
			continue
		}
		r.object(join(path, key), o, shape{
			"type": must(oneOf("mention", "emoji")), "mentionee": may(anything),
			"productId": may(str(100)), "emojiId": may(str(100)),
		})
	}
}

// textV2 is a text in which {key} stands for a substitution, and {{ and }} for braces.
func textV2(r *report, path string, v any) string {
	if complaint := str(5000)(r, path, v); complaint != "" {
		return complaint
	}
	s := strings.NewReplacer("{{", "", "}}", "").Replace(v.(string))
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			break
		}
		end := strings.IndexByte(s[i:], '}')
		if s[i] == '}' || end < 2 {
			return fmt.Sprintf("Invalid placeholder at %d", len(utf16.Encode([]rune(s[:i]))))
		}
		s = s[i+end+1:]
	}
	return ""
}

func template(r *report, path string, obj map[string]any) {
	r.add(join(path, "type"), oneOf("buttons", "confirm", "carousel", "image_carousel")(r, path, obj["type"]))
}

func flex(r *report, path string, obj map[string]any) {
	if obj["type"] == "bubble" {
		return
	}
	r.add(join(path, "type"), oneOf("bubble", "carousel")(r, path, obj["type"]))
	r.add(join(path, "contents"), list(1, 12, func(*report, string, map[string]any) {})(r, path, obj["contents"]))
}

// The shapes of actions (Messaging API reference, Action objects).
var (
	actionCommon = shape{"type": must(anything), "label": may(chars(20))}
	actionShapes = map[string]shape{
		"postback": {
			"data": must(str(300)), "displayText": may(chars(300)), "text": may(chars(300)), "fillInText": may(chars(300)),
			"inputOption": may(oneOf("closeRichMenu", "openRichMenu", "openKeyboard", "openVoice")),
		},
		"message":        {"text": must(chars(300))},
		"uri":            {"uri": must(link), "altUri": may(anything)},
		"datetimepicker": {"data": must(str(300)), "mode": must(oneOf("date", "time", "datetime")), "initial": may(anything), "max": may(anything), "min": may(anything)},
		"clipboard":      {"clipboardText": must(str(1000))},
		"camera":         {},
		"cameraRoll":     {},
		"location":       {},
	}
)

func action(r *report, path string, obj map[string]any) {
	typ, _ := obj["type"].(string)
	s, known := actionShapes[typ]
	if !known {
		r.add(join(path, "type"), "Must be a known type of action")
		return
	}
	r.object(path, obj, s, actionCommon)
}
