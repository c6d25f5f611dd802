import { each } from '../paths.ts'
import { overBody } from './form.ts'
import { addressAsAudience, type SchemeFacts } from './scheme.ts'

/*
 * Senders that prove themselves otherwise than by an HMAC in a header or a token; daemon/webhook/senders/special-checks.ts
 * checks each kind.
 */

/** Their checks read none of the fields that describe an HMAC. */
const special = { ...overBody, header: '' } as const

export const specialPresets = {
  discord: {
    title: 'Discord',
    secretIs: 'the Public Key of the application',
    where:
      'the application, General Information: Public Key above, Interactions Endpoint URL below',
    forms: [
      {
        ...special,
        check: 'key-pair',
        keyAlgorithm: 'ed25519',
        header: 'x-signature-ed25519',
        timestampHeader: 'x-signature-timestamp',
        signs: ['{timestamp}', '{body}'],
        secret: 'public-key',
      },
    ],
    // Discord names no limit, and repeats an event for ten minutes.
    toleranceSeconds: 900,
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'event.type' },
    handshake: 'discord',
    source:
      'https://discord.com/developers/docs/interactions/overview#setting-up-an-endpoint-validating-security-request-headers',
  },
  sendgrid: {
    title: 'SendGrid',
    secretIs: 'the Verification Key of the event webhook',
    where: 'Settings, Mail Settings, Event Webhook, with Signed Event Webhook Requests',
    forms: [
      {
        ...special,
        check: 'key-pair',
        keyAlgorithm: 'ecdsa-p256',
        header: 'x-twilio-email-event-webhook-signature',
        encoding: 'base64',
        timestampHeader: 'x-twilio-email-event-webhook-timestamp',
        signs: ['{timestamp}', '{body}'],
        secret: 'public-key',
      },
    ],
    // Twilio repeats a request for 24 hours.
    toleranceSeconds: 86_400,
    deliveryId: { headers: [] },
    event: { field: 'event', items: [each] },
    source:
      'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
  },
  'google-pubsub': {
    title: 'Google Cloud Pub/Sub',
    secretIs: 'nothing: Google publishes its keys',
    where:
      'the subscription, Delivery type Push, Endpoint URL, with Enable authentication: its service account and audience',
    forms: [{ ...special, check: 'google', header: 'authorization', keysFrom: 'google' }],
    deliveryId: { headers: [], body: 'message.messageId' },
    event: { field: 'message.attributes.eventType' },
    source: 'https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions',
  },
  'aws-sns': {
    title: 'Amazon SNS',
    secretIs: 'nothing: Amazon publishes its keys',
    where: 'the topic, Create subscription, protocol HTTPS; not with raw message delivery',
    forms: [{ ...special, check: 'sns', keysFrom: 'aws-sns' }],
    deliveryId: { headers: [], body: 'MessageId' },
    event: { field: 'Type' },
    jsonAsText: true,
    handshake: 'aws-sns',
    source: 'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
  },
  netlify: {
    title: 'Netlify',
    secretIs: 'the JWS secret token of the notification',
    where: 'the site, Notifications, HTTP POST request',
    makesSecret: true,
    forms: [{ ...special, check: 'jwt-of-body', header: 'x-webhook-signature' }],
    deliveryId: { headers: [] },
    event: { field: 'state', header: 'x-netlify-event' },
    source: 'https://docs.netlify.com/site-deploys/notifications/#payload-signature',
  },
  monday: {
    title: 'monday.com',
    secretIs:
      'the Signing Secret of the app (its Client Secret for webhooks about the app itself: list both)',
    where: 'the app, or an integration of the board: Webhooks',
    forms: [{ ...special, check: 'jwt', header: 'authorization' }],
    deliveryId: { headers: [], body: 'event.triggerUuid' },
    event: { field: 'event.type' },
    handshake: 'monday',
    source: 'https://developer.monday.com/apps/docs/authorization-header',
  },
  mailgun: {
    title: 'Mailgun',
    secretIs: 'the HTTP webhook signing key of the account',
    where: 'Sending, Webhooks; the key is in Settings, API security',
    forms: [{ ...special, check: 'mailgun' }],
    // Mailgun repeats a request for eight hours, and its token counts once.
    toleranceSeconds: 28_800,
    deliveryId: { headers: [] },
    event: { field: 'event-data.event' },
    mailAsForm: true,
    emptyReply: true,
    source: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
  },
  twilio: {
    title: 'Twilio',
    secretIs: 'the Auth Token of the account',
    where: 'the number or service, under Webhook; the token is on the first page of the console',
    forms: [
      { ...special, check: 'twilio', header: 'x-twilio-signature', signs: ['{url}', '{body}'] },
    ],
    deliveryId: { headers: ['i-twilio-idempotency-token'] },
    event: { field: 'SmsStatus' },
    emptyReply: true,
    source: 'https://www.twilio.com/docs/usage/security#validating-requests',
  },
  telnyx: {
    title: 'Telnyx',
    secretIs: 'the public key of the account',
    where: 'the profile or application, Webhook URL; the key is in Account, Keys & Credentials',
    forms: [
      {
        ...special,
        check: 'key-pair',
        keyAlgorithm: 'ed25519',
        header: 'telnyx-signature-ed25519',
        encoding: 'base64',
        timestampHeader: 'telnyx-timestamp',
        signs: ['{timestamp}', '|', '{body}'],
        secret: 'public-key',
      },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'data.id' },
    event: { field: 'data.event_type' },
    source: 'https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks',
  },
  'github-actions': {
    title: 'a job of GitHub Actions',
    secretIs: 'nothing: GitHub publishes its keys',
    where:
      'the workflow, with permissions id-token: write: curl with the token for your address as Authorization: Bearer',
    forms: [
      {
        ...special,
        check: 'oidc',
        header: 'authorization',
        keysFrom: 'issuer',
        issuer: 'https://token.actions.githubusercontent.com',
        audience: addressAsAudience,
      },
    ],
    deliveryId: { headers: [] },
    event: { field: 'event' },
    source: 'https://docs.github.com/en/actions/reference/security/oidc',
  },
  paypal: {
    title: 'PayPal',
    secretIs: 'nothing: PayPal publishes its keys',
    where: 'the app in the Developer Dashboard, Webhooks, Add Webhook; its Webhook ID is there too',
    forms: [{ ...special, check: 'paypal', header: 'paypal-transmission-sig', keysFrom: 'paypal' }],
    // PayPal repeats a request for three days; for one day a repeated one is known.
    toleranceSeconds: 86_400,
    deliveryId: { headers: [] },
    event: { field: 'event_type' },
    emptyReply: true,
    source: 'https://developer.paypal.com/api/rest/webhooks/rest/',
  },
  plaid: {
    title: 'Plaid',
    secretIs: 'the secret of the API, by which the key of a delivery is asked for',
    secretForm: {
      pattern: /^[0-9a-f]{30}$/,
      fault: 'is not 30 hex digits, as secrets of Plaid are',
    },
    where: 'the request that creates the link token: webhook',
    forms: [{ ...special, check: 'plaid', header: 'plaid-verification' }],
    toleranceSeconds: 300,
    deliveryId: { headers: [] },
    event: { field: 'webhook_type', action: 'webhook_code' },
    emptyReply: true,
    source: 'https://plaid.com/docs/api/webhooks/webhook-verification/',
  },
  adyen: {
    title: 'Adyen',
    secretIs: 'the HMAC key of the webhook, in hex',
    where: 'Developers, Webhooks, Standard webhook, JSON; the key is under Security',
    // Webhooks of the platform sign the body, and standard ones some fields of each item.
    forms: [
      { ...overBody, header: 'hmacsignature', encoding: 'base64', secret: 'hex' },
      { ...special, check: 'adyen', secret: 'hex' },
    ],
    deliveryId: { headers: [] },
    event: { field: 'NotificationRequestItem.eventCode', items: ['notificationItems', each] },
    answer: { status: 200, text: '[accepted]' },
    source:
      'https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures',
  },
  'microsoft-graph': {
    title: 'Microsoft Graph',
    secretIs: 'the clientState of the subscription',
    where:
      'the request that creates the subscription: notificationUrl, with the secret as clientState',
    makesSecret: true,
    forms: [{ ...special, check: 'client-state' }],
    deliveryId: { headers: [] },
    event: { field: 'changeType', items: ['value', each] },
    handshake: 'microsoft-graph',
    source: 'https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks',
  },
} as const satisfies Readonly<Record<string, SchemeFacts>>
