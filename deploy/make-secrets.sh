#!/bin/sh
# Makes the secrets of compose.yaml in deploy/secrets, once: it refuses to replace what is there.
#
# The folder is closed to others (0700). The files in it are readable (0644) because each is shown to a container whose
# user is another number than yours.
set -eu
umask 077
cd "$(dirname "$0")/secrets"
chmod 0700 .

random() { head -c 24 /dev/urandom | od -An -v -t x1 | tr -d ' \n'; }

for name in postgres-password zerocron-password redis-users.acl database-url redis-url secret-key; do
    if [ -e "$name" ]; then
        echo "deploy/secrets/$name is there already. Remove it first if you mean to replace it." >&2
        exit 1
    fi
done

random >postgres-password
random >zerocron-password
redis_password=$(random)
printf 'postgresql://zerocron:%s@postgres:5432/zerocron\n' "$(cat zerocron-password)" >database-url
printf 'redis://zerocron:%s@redis:6379/0\n' "$redis_password" >redis-url
head -c 32 /dev/urandom | od -An -v -t x1 | tr -d ' \n' >secret-key
cat >redis-users.acl <<ACL
user default on nopass resetkeys resetchannels -@all +ping
user zerocron on >$redis_password resetkeys ~zerocron:* resetchannels &zerocron:* -@all +@read +@write +@connection +@pubsub +@scripting -@dangerous -@blocking +info +cluster|slots +cluster|shards +cluster|myid
ACL
chmod 0644 postgres-password zerocron-password redis-users.acl database-url redis-url secret-key
echo "Made in $(pwd)."
