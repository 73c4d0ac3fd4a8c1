package why

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

func judgeSigning(csr *certificatesv1.CertificateSigningRequest) finding {
	f := finding{facts: []string{"signer " + csr.Spec.SignerName, "asked for by " + csr.Spec.Username}}
	said := map[certificatesv1.RequestConditionType]certificatesv1.CertificateSigningRequestCondition{}
	for _, c := range csr.Status.Conditions {
		said[c.Type] = c
		f.facts = append(f.facts, fmt.Sprintf("%s (%s)", c.Type, c.Reason))
	}
	denied, isDenied := said[certificatesv1.CertificateDenied]
	failed, hasFailed := said[certificatesv1.CertificateFailed]
	_, isApproved := said[certificatesv1.CertificateApproved]
	switch {
	case isDenied:
		return f.with(Blocked, fmt.Sprintf("it has been denied (%s)", denied.Reason)).because(denied.Message)
	case hasFailed:
		return f.with(Blocked, fmt.Sprintf("its signer does not issue the certificate (%s)", failed.Reason)).because(failed.Message)
	case len(csr.Status.Certificate) > 0:
		return f.with(Complete, "its certificate has been issued")
	case isApproved:
		return f.with(Waiting, fmt.Sprintf("it is approved, and waits for signer %s to issue the certificate", csr.Spec.SignerName))
	}
	return f.with(Waiting, "nobody has approved or denied it yet")
}

func judgeDevices(claim *resourcev1.ResourceClaim) finding {
	f := finding{facts: []string{plural(len(claim.Spec.Devices.Requests), "request")}}
	allocated, reserved := claim.Status.Allocation, claim.Status.ReservedFor
	if allocated == nil {
		f.over = true // the pods say more about it than it says about them
		return f.with(Waiting, "its devices are not allocated: the scheduler does that when it finds a node for a pod that uses it")
	}
	for _, d := range allocated.Devices.Results {
		f.facts = append(f.facts, fmt.Sprintf("request %s has device %s of %s, pool %s", d.Request, d.Device, d.Driver, d.Pool))
	}
	if len(reserved) == 0 {
		return f.with(Waiting, "its devices are allocated, and nobody has reserved them")
	}
	var names []string
	for _, by := range reserved {
		names = append(names, by.Name)
	}
	return f.with(Complete, "its devices are allocated, and reserved for "+someOf(names))
}
