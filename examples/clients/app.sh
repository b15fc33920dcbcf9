#!/usr/bin/env bash
# Asks the desk for a refund, and approves it. Needs curl and jq.
#
#     gesta serve examples/desk &
#     examples/clients/app.sh
set -euo pipefail

server=${GESTA_SERVER:-http://127.0.0.1:7450}

ask() { # METHOD PATH [BODY]
  curl --silent --show-error --fail-with-body --request "$1" "$server$2" \
    --header 'content-type: application/json' \
    ${GESTA_API_KEY:+--header "authorization: Bearer $GESTA_API_KEY"} \
    ${3:+--header "idempotency-key: $(date +%s%N)-$RANDOM" --data "$3"}
}

run=$(ask POST /v1/agents/desk/runs '{"input":"Refund order 7, 250 dollars"}')
id=$(jq -r .report.run_id <<<"$run")

# What waits, and why: the exact arguments, and what led to them.
call=$(jq -r '.deferred[0].id' <<<"$run")
ask GET "/v1/holds/$id/$call" | jq '{said: .led_to_it.said, reason: .led_to_it.reason, arguments: .hold.arguments}'

# Less than was asked for. The answer quotes the hold's binding: what was approved is what runs.
answer=$(jq -c '{answers: [{binding: .deferred[0].binding, approve: true, arguments: {order: "7", amount: 200}}]}' <<<"$run")
ask POST "/v1/runs/$id/answers" "$answer" | jq -r '.tool_calls[-1].result.dollars, .text'
