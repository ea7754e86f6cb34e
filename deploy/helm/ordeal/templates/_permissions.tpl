{{/* Who may do what on NATS: the accounts of deploy/nats/nats.conf, which has the
     reasons, word for word but for the names of users and variables. testdata/deploy
     compares the two, and tries them out. Controllers own the account with the streams;
     agents have one of their own that sees of it what is imported and nothing else.
     Agents share one user, so nothing keeps them from speaking as each other. */}}
{{- define "ordeal.natsAccounts" -}}
ORDEAL {
  jetstream: enabled
  users: [
    { user: {{ .Values.nats.auth.controllerUser | quote }}, password: $NATS_CONTROLLER_PASSWORD }
  ]
  exports: [
    { service: "$JS.API.CONSUMER.INFO.ORDEAL_UNITS.*", accounts: [AGENTS] }
    { service: "$JS.API.CONSUMER.MSG.NEXT.ORDEAL_UNITS.*", response_type: stream, response_threshold: "1m", accounts: [AGENTS] }
    { service: "$JS.ACK.ORDEAL_UNITS.*.>", accounts: [AGENTS] }
    { service: "$JS.ACK.*.*.ORDEAL_UNITS.*.>", accounts: [AGENTS] }
    { service: "$KV.ORDEAL_AGENTS.*", accounts: [AGENTS] }
    { service: "ordeal.v1.result.*.*.*", accounts: [AGENTS] }
    { service: "ordeal.v1.progress.*.*", accounts: [AGENTS] }
    { service: "ordeal.v1.event.*.*", accounts: [AGENTS] }
    { service: "ordeal.v1.lease.*.*", accounts: [AGENTS] }
    { stream: "ordeal.v1.ctl.*", accounts: [AGENTS] }
  ]
  imports: [
    { service: { account: AGENTS, subject: "ordeal.v1.agent.*" } }
  ]
}

AGENTS {
  users: [
    { user: {{ .Values.nats.auth.agentUser | quote }}, password: $NATS_AGENT_PASSWORD
      permissions {
        publish { allow: [
          "$JS.API.CONSUMER.INFO.ORDEAL_UNITS.*"
          "$JS.API.CONSUMER.MSG.NEXT.ORDEAL_UNITS.*"
          "ordeal.v1.js.CONSUMER.INFO.ORDEAL_UNITS.*"
          "ordeal.v1.js.CONSUMER.MSG.NEXT.ORDEAL_UNITS.*"
          "$JS.ACK.ORDEAL_UNITS.*.>"
          "$JS.ACK.*.*.ORDEAL_UNITS.*.>"
          "$KV.ORDEAL_AGENTS.*"
          "ordeal.v1.result.*.*.*"
          "ordeal.v1.progress.*.*"
          "ordeal.v1.event.*.*"
          "ordeal.v1.lease.*.*"
          "ordeal.v1.name.*"
        ] }
        subscribe { allow: [
          "_INBOX.agent.*.>"
          "ordeal.v1.agent.*"
          "ordeal.v1.name.*"
          "ordeal.v1.ctl.*"
        ] }
        allow_responses { max: 1, expires: "2m" }
      }
    }
  ]
  exports: [
    { service: "ordeal.v1.agent.*", accounts: [ORDEAL] }
  ]
  imports: [
    { service: { account: ORDEAL, subject: "$JS.API.CONSUMER.INFO.ORDEAL_UNITS.*" }, to: "ordeal.v1.js.CONSUMER.INFO.ORDEAL_UNITS.*" }
    { service: { account: ORDEAL, subject: "$JS.API.CONSUMER.MSG.NEXT.ORDEAL_UNITS.*" }, to: "ordeal.v1.js.CONSUMER.MSG.NEXT.ORDEAL_UNITS.*" }
    { service: { account: ORDEAL, subject: "$JS.ACK.ORDEAL_UNITS.*.>" } }
    { service: { account: ORDEAL, subject: "$JS.ACK.*.*.ORDEAL_UNITS.*.>" } }
    { service: { account: ORDEAL, subject: "$KV.ORDEAL_AGENTS.*" } }
    { service: { account: ORDEAL, subject: "ordeal.v1.result.*.*.*" } }
    { service: { account: ORDEAL, subject: "ordeal.v1.progress.*.*" } }
    { service: { account: ORDEAL, subject: "ordeal.v1.event.*.*" } }
    { service: { account: ORDEAL, subject: "ordeal.v1.lease.*.*" } }
    { stream: { account: ORDEAL, subject: "ordeal.v1.ctl.*" } }
  ]
}
{{- end -}}
