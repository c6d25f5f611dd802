import { Argument, type Command, Option } from 'commander'
import { run } from '../../run-action.ts'

/** The commands of `doorward bot`. The file of a command is loaded only when it is used. */
export const addBotCommands = (bot: Command): void => {
  bot
    .command('create')
    .description('make a GitHub App of your own in the browser, in one press')
    .addArgument(new Argument('<provider>', 'github').choices(['github']))
    .option('--org <name>', 'the organization that owns it (default: you)')
    .option('--name <name>', 'its name; GitHub has each name once (default: doorward-…)')
    .addOption(
      new Option('--can <what>', 'review, or fix: push branches as well')
        .choices(['review', 'fix'])
        .default('review'),
    )
    .option('--url <url>', 'base of the address of its deliveries (default: server.public_url)')
    .option('--placeholder <url>', 'an address that leads nowhere, where GitHub refuses ours')
    .option('--homepage <url>', 'its home page (default: its page at GitHub)')
    .option('--enterprise <url>', 'your GitHub Enterprise Server')
    .option('--no-browser', 'print the link and open no browser')
    .addHelpText('after', createHelp)
    .action(run(async () => (await import('./create.ts')).createBot))
  bot
    .command('list')
    .description('the bots whose keys are on this machine')
    .action(run(async () => (await import('./manage.ts')).listBots))
  bot
    .command('show')
    .description('one bot as GitHub has it: permissions, installations and repositories')
    .argument('<name>', 'its slug, or github@slug')
    .action(run(async () => (await import('./manage.ts')).showBot))
  bot
    .command('install')
    .description('choose its repositories in the browser')
    .argument('<name>', 'its slug, or github@slug')
    .option('--no-browser', 'print the address and open no browser')
    .action(run(async () => (await import('./create.ts')).installBot))
  bot
    .command('rotate')
    .description('replace its private key, or the secret of its deliveries')
    .argument('<name>', 'its slug, or github@slug')
    .option('--key', 'read the new key, which GitHub makes on its page, from standard input')
    .option('--secret', 'make a new secret, here and at GitHub')
    .action(run(async () => (await import('./manage.ts')).rotateBot))
  bot
    .command('remove')
    .description('forget its key here; the App itself is deleted on its page at GitHub')
    .argument('<name>', 'its slug, or github@slug')
    .option('-y, --yes', 'do not ask')
    .action(run(async () => (await import('./manage.ts')).removeBot))
}

const createHelp = `
The page shows what the bot may do and why, and one button makes it. Its key
stays in this home. Each token is for one repository and one step, for an hour:

  doorward oauth token github@NAME --repo OWNER/REPO --permission contents:read

Examples:
  doorward bot create github
  doorward bot create github --org acme --can fix`
