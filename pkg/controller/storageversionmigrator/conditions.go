package storageversionmigrator

import (
	"fmt"
	"strings"
	"time"

	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What conditions say; users wait for these words.
const (
	reasonRunning, messageRunning     = "MigrationRunning", "The migration is running"
	reasonCompleted, messageCompleted = "MigrationCompleted", "Migration completed"
	reasonSucceeded                   = "StorageVersionMigrationSucceeded"
	reasonFailed                      = "StorageVersionMigrationFailed"

	messageUnknown = "resource does not exist in discovery"
)

type migration = storagemigrationv1beta1.StorageVersionMigration

func is(m *migration, t storagemigrationv1beta1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

func running(m *migration) bool { return is(m, storagemigrationv1beta1.MigrationRunning) }

func succeeded(m *migration) bool { return is(m, storagemigrationv1beta1.MigrationSucceeded) }

// finished reports whether there is nothing left to migrate.
func finished(m *migration) bool {
	return succeeded(m) || is(m, storagemigrationv1beta1.MigrationFailed)
}

// runningSince is when the migration got its turn.
func runningSince(m *migration) time.Time {
	if c := meta.FindStatusCondition(m.Status.Conditions, string(storagemigrationv1beta1.MigrationRunning)); c != nil {
		return c.LastTransitionTime.Time
	}
	return m.CreationTimestamp.Time
}

// with returns a copy of the migration with the condition, as of now.
func with(m *migration, now time.Time, t storagemigrationv1beta1.MigrationConditionType, status metav1.ConditionStatus, reason, message string) *migration {
	changed := m.DeepCopy()
	meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{
		Type: string(t), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now),
	})
	return changed
}

func started(m *migration, now time.Time) *migration {
	return with(m, now, storagemigrationv1beta1.MigrationRunning, metav1.ConditionTrue, reasonRunning, messageRunning)
}

func completed(m *migration, now time.Time) *migration {
	return with(m, now, storagemigrationv1beta1.MigrationRunning, metav1.ConditionFalse, reasonCompleted, messageCompleted)
}

func success(m *migration, now time.Time) *migration {
	return with(m, now, storagemigrationv1beta1.MigrationSucceeded, metav1.ConditionTrue, reasonSucceeded, "")
}

func failure(m *migration, now time.Time, message string) *migration {
	return with(m, now, storagemigrationv1beta1.MigrationFailed, metav1.ConditionTrue, reasonFailed, message)
}

// longestMessage is what the API server takes as the message of a condition, in bytes.
const longestMessage = 32 * 1024

// refusal is the message of a migration that failed for one object.
func refusal(err error) string {
	message := fmt.Sprintf("migration encountered unhandled error: %v", err)
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "")
	}
	return message
}
