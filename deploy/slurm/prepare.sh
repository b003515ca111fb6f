#!/usr/bin/env bash
# Makes the folder that spexd.sbatch and night.sbatch share: an authority for the servers' certificates, a token, and the file
# of identities. Only its owner can read the folder; put it where all nodes see it. Does nothing if it is complete.
#
#   prepare.sh FOLDER
set -euo pipefail
umask 077
folder=${1:?usage: prepare.sh FOLDER}
[ -e "$folder/ready" ] && exit 0
mkdir -p "$folder/endpoints" "$folder/servers"
cd "$folder"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=spexd on Slurm" \
  -addext "basicConstraints=critical,CA:TRUE" -keyout authority.key -out authority.pem 2>/dev/null
openssl rand -hex 32 > token
printf 'pipeline submit,read token sha256:%s\n' "$(printf %s "$(cat token)" | sha256sum | cut -d' ' -f1)" > identities
touch ready
