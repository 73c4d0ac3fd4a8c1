package harness

import (
	"bufio"
	"encoding/json"
	"io"
	"iter"
	"os"
	"time"
)

// TimedAuditEvent is a request with the time at which the API server took it.
type TimedAuditEvent struct {
	AuditEvent
	Received time.Time `json:"requestReceivedTimestamp"`
}

// All goes through the events after a mark, one at a time, for logs that are
// larger than one wants to hold. A line that is still being written is left out.
func (l *AuditLog) All(mark int64) iter.Seq[TimedAuditEvent] {
	return func(yield func(TimedAuditEvent) bool) {
		file, err := os.Open(l.path)
		if err != nil {
			return
		}
		defer file.Close()
		if _, err := file.Seek(mark, io.SeekStart); err != nil {
			return
		}
		lines := bufio.NewReaderSize(file, 1<<16)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var event TimedAuditEvent
			if json.Unmarshal(line, &event) == nil && !yield(event) {
				return
			}
		}
	}
}
