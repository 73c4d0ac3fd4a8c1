// Package servicecidrs keeps a ServiceCIDR from going while Services use
// addresses of it, and says whether it is ready for use.
//
// It reads ServiceCIDRs and IPAddresses. It adds its finalizer to every
// ServiceCIDR and applies the Ready condition. When a ServiceCIDR is deleted, the
// finalizer stays until each address that the API server handed out of it is in
// another ServiceCIDR too, and until the API servers had time to hear of the
// deletion. It never touches an IPAddress, nor other finalizers.
package servicecidrs
