// Package bootstraptokens reads the secrets that bootstrap tokens are kept in:
// which of them there are, how long a token is valid and whether it may sign.
package bootstraptokens
