import { type Command, Option } from 'commander'
import type { BotTokenOptions, ValidityOptions } from './token.ts'
import { listed, run, seconds } from '../../run-action.ts'

/** The commands of `doorward oauth`. */
export const addOauthCommands = (
  oauth: Command,
  afterDashes: readonly string[] | undefined,
): void => {
  addLoginCommands(oauth)
  addTokenCommands(oauth, afterDashes)
}

const addLoginCommands = (oauth: Command): void => {
  oauth
    .command('login')
    .description('log in to a provider in a browser')
    .argument(
      '<provider>',
      'google, github, slack, another one of `doorward help providers`, or a name under providers: in gateway.yaml',
    )
    .option(
      '--as <account>',
      'name of the account, for a second one: github --as work is github@work',
    )
    .option('--client-id <id>', 'OAuth client id; remembered for the next login')
    .addOption(
      new Option(
        '--client-secret <secret>',
        'OAuth client secret; other users can see it: prefer --client-secret-stdin',
      ).conflicts('clientSecretStdin'),
    )
    .option(
      '--client-secret-stdin',
      'read the client secret from standard input; prompts on a terminal',
    )
    .option('--scopes <a,b>', "scopes to request (default: the provider's)")
    .option('--no-browser', 'print the URL and open no browser')
    .option('--paste', 'read the redirected URL from standard input (no browser on this machine)')
    .addOption(
      new Option(
        '--device',
        'enter a code in any browser, on any machine (where the provider and your app allow it)',
      ).conflicts('paste'),
    )
    .addHelpText('after', loginHelp)
    .action(run(async () => (await import('./login.ts')).login))
  oauth
    .command('import')
    .description('take over the login of gh, the GitHub CLI')
    .argument('<program>', 'gh')
    .option('--as <account>', 'name of the account: --as work is github@work')
    .option('--yes', 'do not ask')
    .addHelpText('after', importHelp)
    .action(run(async () => (await import('./import.ts')).importLogin))
  oauth
    .command('list')
    .description('authorized providers: account, scopes, expiry, status')
    .addHelpText('after', listHelp)
    .action(run(async () => (await import('./list.ts')).listTokens))
  oauth
    .command('default')
    .description("choose which account a provider's name means")
    .argument('<provider>', 'a provider of oauth list')
    .argument('[account]', 'work for github@work; without it, the present choice is printed')
    .option('--unnamed', 'the account without a name')
    .addHelpText('after', defaultHelp)
    .action(run(async () => (await import('./list.ts')).chooseDefault))
  oauth
    .command('logout')
    .description('revoke and remove the tokens of a provider')
    .argument('<provider>', 'a provider of oauth list')
    .option('--forget', 'also remove the OAuth client: id and secret')
    .addHelpText('after', logoutHelp)
    .action(run(async () => (await import('./logout.ts')).logout))
}

const addTokenCommands = (oauth: Command, afterDashes: readonly string[] | undefined): void => {
  oauth
    .command('token')
    .description('print a fresh access token and nothing else')
    .argument('<provider>', 'a provider of oauth list')
    .option('--format <format>', 'token (the default), json, header, header-json or env')
    .addOption(minValidity())
    .addOption(repository())
    .addOption(permission())
    .addHelpText('after', tokenHelp)
    .action(run(async () => (await import('./token.ts')).printToken))
  oauth
    .command('exec')
    .description('run a command with fresh access tokens in its environment')
    .argument('<provider...>', 'github for GITHUB_TOKEN, or github=NAME; repeatable')
    .addOption(minValidity())
    .addOption(repository())
    .addOption(permission())
    .usage('[options] <provider>[=NAME]... -- command [args...]')
    .addHelpText(
      'after',
      `
Example:
  doorward oauth exec github=GH_TOKEN -- gh api user

It exits as the command exits; with 127 if there is no such command, and with
126 if it cannot be run.`,
    )
    .action(
      run(async () => {
        const { exec } = await import('./exec.ts')
        return (context, words, options: ValidityOptions & BotTokenOptions) => {
          const providers = words.slice(0, words.length - (afterDashes?.length ?? 0))
          return exec(context, providers, { ...options, command: afterDashes })
        }
      }),
    )
  oauth
    .command('git-credential')
    .description('git credential helper for GitHub')
    .argument('<operation>', 'get, store or erase; git adds it')
    .addHelpText('after', gitCredentialHelp)
    .action(run(async () => (await import('./git-credential.ts')).gitCredential))
}

const repository = () =>
  new Option('--repo <owner/name>', 'of a bot: the repository that its token is for')

const permission = () =>
  new Option(
    '--permission <name:level>',
    'of a bot: what its token may do there; repeatable (default: contents:read)',
  ).argParser(listed)

const minValidity = () =>
  new Option(
    '--min-validity <duration>',
    'how long the token must still be valid (default: 60s)',
  ).argParser(seconds)

const loginHelp = `
The first login needs your own OAuth client; without one, the command says where
to create it. Client id and secret are remembered after a successful login.

Examples:
  doorward oauth login github --client-id ID --client-secret-stdin
  doorward oauth login github
  doorward oauth login github --scopes repo,read:org
  doorward oauth login github --as work     # a second account: github@work

Over ssh, in a container, under WSL, and with --no-browser, it also takes the
address that your own browser ends at: paste it. --device needs only a code.
--json prints two lines: the started login, and its outcome.`

const importHelp = `
It needs no OAuth client of your own. gh prints its token, the daemon asks GitHub
whose it is, and stores it. Then doorward and gh have the same token: it ends
when gh's login ends, and oauth logout removes it here without revoking it.`

const listHelp = `
STATUS is ok, expired (refreshed on the next request if possible) or needs-login
(log in again). EXPIRES is the expiry of the access token, which the daemon
refreshes ahead of time if the provider allows it. Where a provider has several
accounts, (default) is the one that its name means: doorward oauth default.`

const defaultHelp = `
After "doorward oauth default github work", whatever asks for github gets the
token of github@work. Login and logout take a name as it is written.`

const logoutHelp = `
The tokens are revoked at the provider and removed here. If the provider cannot
be reached, they are still removed, and the revocation is retried for 30 days.
The client is remembered, so that the next login needs no options.`

const tokenHelp = `
Examples:
  TOKEN=$(doorward oauth token github) || exit
  doorward oauth token github --format header |
    curl -H @- https://api.github.com/user

header is "Authorization: Bearer ...", header-json an object with that header,
env a line GITHUB_TOKEN=..., and json the whole answer of the daemon.

It exits with 4 if a login is needed. Other users of this machine can see a
token on a command line: oauth exec puts it into the environment instead.`

const gitCredentialHelp = `
To install it for github.com, and in the same way for gist.github.com:

  git config --global credential.https://github.com.helper \\
    '!doorward oauth git-credential'

Existing helpers are asked first, and receive the token to store. To exclude
them, put an empty helper in front, with --replace-all, and --add this one.

GitHub Enterprise is known by providers.github in gateway.yaml, any other server
by git_hosts: [git.corp.example] of its provider. For a host that is not known,
get prints nothing. With several accounts, git's user name chooses one, by its
name at GitHub or here. store and erase do nothing: doorward keeps the tokens.`
