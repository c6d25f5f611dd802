import { each } from '../paths.ts'
import { overBody } from './form.ts'
import type { SchemeFacts } from './scheme.ts'

/*
 * Senders of software teams: forges, trackers, builds and monitors.
 */

export const developerPresets = {
  gitea: {
    title: 'Gitea, Forgejo or Gogs',
    secretIs: 'what is typed as Secret into the webhook',
    where: 'the repository, Settings, Webhooks, Add webhook; POST, application/json',
    makesSecret: true,
    // All three send the headers of Gogs, Gitea and Forgejo those of Gitea too.
    forms: [
      { ...overBody, header: 'x-gitea-signature' },
      { ...overBody, header: 'x-gogs-signature' },
    ],
    deliveryId: { headers: ['x-gitea-delivery', 'x-gogs-delivery'] },
    event: { header: 'x-gogs-event', action: 'action' },
    hasUpdatedAt: true,
    source: 'https://docs.gitea.com/usage/webhooks',
  },
  bitbucket: {
    title: 'Bitbucket',
    secretIs: 'the Secret of the webhook',
    where: 'the repository, Repository settings, Webhooks, Add webhook',
    makesSecret: true,
    forms: [{ ...overBody, header: 'x-hub-signature', prefix: 'sha256=' }],
    // The second is that of Bitbucket Data Center.
    deliveryId: { headers: ['x-request-uuid', 'x-request-id'] },
    event: { header: 'x-event-key' },
    handshake: 'bitbucket',
    source: 'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/',
  },
  jira: {
    title: 'Jira',
    secretIs: 'the Secret of the webhook',
    where: 'Settings, System, WebHooks, Create a WebHook',
    makesSecret: true,
    forms: [{ ...overBody, header: 'x-hub-signature', prefix: 'sha256=' }],
    deliveryId: { headers: ['x-atlassian-webhook-identifier'] },
    event: { field: 'webhookEvent' },
    source: 'https://developer.atlassian.com/cloud/jira/platform/webhooks/',
  },
  'azure-devops': {
    title: 'Azure DevOps',
    secretIs: 'the Basic authentication password of the subscription',
    where: 'the project, Project settings, Service hooks, Web Hooks',
    makesSecret: true,
    forms: [{ ...overBody, check: 'token', header: 'authorization', in: 'basic' }],
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'eventType' },
    source: 'https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks',
  },
  pagerduty: {
    title: 'PagerDuty',
    secretIs: 'the signing secret, shown once when the subscription is created',
    where: 'Integrations, Generic Webhooks (v3), New Webhook',
    // Two signatures while the secret is rotated.
    forms: [{ ...overBody, header: 'x-pagerduty-signature', list: 'commas', param: 'v1' }],
    deliveryId: { headers: [], body: 'event.id' },
    event: { field: 'event.event_type' },
    handshake: 'pagerduty',
    source: 'https://developer.pagerduty.com/docs/verifying-webhook-signatures',
  },
  grafana: {
    title: 'Grafana',
    secretIs: 'the HMAC secret of the contact point, or its password or token',
    where:
      'Alerting, Contact points, Webhook: HMAC Signature, Secret (leave its timestamp header empty)',
    makesSecret: true,
    forms: [
      { ...overBody, header: 'x-grafana-alerting-signature' },
      { ...overBody, check: 'token', header: 'authorization', in: 'basic' },
      { ...overBody, check: 'token', header: 'authorization', in: 'bearer' },
    ],
    deliveryId: { headers: [] },
    event: { field: 'status' },
    source:
      'https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/',
  },
  alertmanager: {
    title: 'Prometheus Alertmanager',
    secretIs: 'the credentials or password in http_config of the receiver',
    where: 'alertmanager.yml: webhook_configs, url, and http_config with authorization',
    makesSecret: true,
    forms: [
      { ...overBody, check: 'token', header: 'authorization', in: 'basic' },
      { ...overBody, check: 'token', header: 'authorization', in: 'bearer' },
    ],
    deliveryId: { headers: [] },
    event: { field: 'status' },
    source: 'https://prometheus.io/docs/alerting/latest/configuration/#webhook_config',
  },
  vercel: {
    title: 'Vercel',
    secretIs: 'the secret, shown once when the webhook is created',
    where: 'the team, Settings, Webhooks, Create Webhook',
    forms: [{ ...overBody, header: 'x-vercel-signature', algorithm: 'sha1' }],
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'type' },
    source: 'https://vercel.com/docs/webhooks/webhooks-api',
  },
  circleci: {
    title: 'CircleCI',
    secretIs: 'the Secret token of the webhook',
    where: 'the project, Project Settings, Webhooks, Add Webhook',
    makesSecret: true,
    forms: [{ ...overBody, header: 'circleci-signature', list: 'commas', param: 'v1' }],
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'type', header: 'circleci-event-type' },
    source: 'https://circleci.com/docs/guides/integration/outbound-webhooks/',
  },
  buildkite: {
    title: 'Buildkite',
    secretIs: 'the Token of the notification service',
    where: 'Settings, Notification Services, Add Webhook; send an HMAC signature',
    forms: [
      {
        ...overBody,
        header: 'x-buildkite-signature',
        list: 'commas',
        param: 'signature',
        timestampParam: 'timestamp',
        signs: ['{timestamp}', '.', '{body}'],
      },
      { ...overBody, check: 'token', header: 'x-buildkite-token' },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: [] },
    event: { field: 'event', header: 'x-buildkite-event' },
    handshake: 'buildkite',
    source: 'https://buildkite.com/docs/apis/webhooks/pipelines',
  },
  terraform: {
    title: 'HCP Terraform',
    secretIs: 'the Token of the notification',
    where: 'the workspace, Settings, Notifications, Create a notification, Webhook',
    makesSecret: true,
    forms: [{ ...overBody, header: 'x-tfe-notification-signature', algorithm: 'sha512' }],
    deliveryId: { headers: [] },
    // Version 2 of its payload has one trigger, at the top.
    event: { field: 'trigger', items: ['notifications', each] },
    handshake: 'terraform',
    source:
      'https://developer.hashicorp.com/terraform/cloud-docs/api-docs/notification-configurations',
  },
  discourse: {
    title: 'Discourse',
    secretIs: 'the Secret of the webhook',
    where: 'Admin, Advanced, Webhooks, Add Webhook; content type application/json',
    makesSecret: true,
    forms: [{ ...overBody, header: 'x-discourse-event-signature', prefix: 'sha256=' }],
    deliveryId: { headers: ['x-discourse-event-id'] },
    event: { header: 'x-discourse-event' },
    handshake: 'discourse',
    source:
      'https://meta.discourse.org/t/configure-webhooks-that-trigger-on-discourse-events-to-integrate-with-external-services/49045',
  },
  cloudevents: {
    title: 'a sender by CloudEvents',
    secretIs: 'the bearer token that the sender has',
    where: 'its settings of webhooks or subscriptions',
    makesSecret: true,
    forms: [
      { ...overBody, check: 'token', header: '', in: 'query', query: 'access_token' },
      { ...overBody, check: 'token', header: 'authorization', in: 'bearer' },
    ],
    deliveryId: {
      headers: ['ce-id'],
      body: 'id',
      source: {
        header: 'ce-source',
        field: 'source',
        mediaType: 'application/cloudevents+json',
      },
    },
    event: { field: 'type', header: 'ce-type', items: [each] },
    handshake: 'cloudevents',
    source: 'https://github.com/cloudevents/spec/blob/main/cloudevents/http-webhook.md',
  },
} as const satisfies Readonly<Record<string, SchemeFacts>>
