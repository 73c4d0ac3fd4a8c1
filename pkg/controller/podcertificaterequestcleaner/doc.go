// Package podcertificaterequestcleaner deletes PodCertificateRequests a quarter
// of an hour after they were created, whatever became of them: a kubelet has
// taken the certificate by then or asks again.
//
// It reads the metadata of PodCertificateRequests, and deletes them under their
// UID. It looks at no status and touches nothing else.
package podcertificaterequestcleaner
