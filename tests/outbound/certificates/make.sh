#!/bin/sh
# Makes the certificates of the TLS tests. They are kept in the repository because making them needs the openssl command;
# they protect nothing, and only tests trust them. Run it here to make new ones.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/ca.cnf" <<CNF
[ca]
default_ca = it
[it]
dir = $work
database = $work/index
serial = $work/serial
new_certs_dir = $work
default_md = sha256
policy = any
copy_extensions = none
unique_subject = no
[any]
commonName = supplied
[root]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign,cRLSign
subjectKeyIdentifier = hash
[good]
subjectAltName = DNS:localhost,IP:127.0.0.1
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
[other]
subjectAltName = DNS:other.example
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
keyUsage = critical,digitalSignature
extendedKeyUsage = serverAuth
[self]
subjectAltName = DNS:localhost,IP:127.0.0.1
basicConstraints = critical,CA:false
subjectKeyIdentifier = hash
CNF
: > "$work/index"
echo 01 > "$work/serial"

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$work/$1.key"; }

# own NAME EXTENSIONS: a key and the certificate it signed itself, valid since before any machine that runs the tests
own() {
    key "$1"
    openssl req -new -key "$work/$1.key" -subj "/CN=0cron test $1" -config "$work/ca.cnf" -out "$work/$1.csr"
    openssl ca -batch -notext -selfsign -config "$work/ca.cnf" -keyfile "$work/$1.key" -extensions "$2" \
        -startdate 20200101000000Z -enddate 21200101000000Z -in "$work/$1.csr" -out "$work/$1.crt" 2>/dev/null
}
own authority root
cp "$work/authority.crt" ca.pem
own self-signed self
cat "$work/self-signed.key" "$work/self-signed.crt" > self-signed.pem

# leaf NAME EXTENSIONS FIRST-DAY LAST-DAY: key and certificate in one file
leaf() {
    key "$1"
    openssl req -new -key "$work/$1.key" -subj "/CN=$1" -config "$work/ca.cnf" -out "$work/$1.csr"
    openssl ca -batch -notext -config "$work/ca.cnf" -cert ca.pem -keyfile "$work/authority.key" -extensions "$2" \
        -startdate "$3" -enddate "$4" -in "$work/$1.csr" -out "$work/$1.crt" 2>/dev/null
    cat "$work/$1.key" "$work/$1.crt" > "$1.pem"
}
leaf good good 20200101000000Z 21200101000000Z
leaf wrong-host other 20200101000000Z 21200101000000Z
leaf expired good 20200101000000Z 20200201000000Z
