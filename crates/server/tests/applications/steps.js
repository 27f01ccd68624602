// Steps of a scenario: each is told on a line that scripts/applications.sh counts.
'use strict';

const pg = {host: '127.0.0.1', port: Number(process.env.PGPORT), user: 'nvcaracal',
  database: 'nvcaracal', password: ''};
const url = `postgresql://nvcaracal@127.0.0.1:${pg.port}/nvcaracal`;

function firstLine(error) {
  if (error && error.code === 'ERR_ASSERTION' && error.generatedMessage) {
    return `${JSON.stringify(error.actual)} instead of ${JSON.stringify(error.expected)}`;
  }
  if (error && error.cause) return firstLine(error.cause);
  const said = String((error && error.message) || error).split('\n');
  // Prisma shows where the call stands first.
  if (error && error.clientVersion) said.reverse();
  const line = (said.find((one) => one.trim()) || 'an error without words').trim();
  // Knex puts the statement before what the server says.
  return error && error.severity ? line.slice(line.lastIndexOf(' - ') + 1).replace(/^- /, '') : line;
}

// Runs one step, tells what came of it, and answers whether it passed.
async function step(name, run) {
  try {
    await run();
  } catch (error) {
    if (process.env.STEPS_TRACE) console.error(error);
    console.log(`failed ${name}: ${firstLine(error)}`);
    return false;
  }
  console.log(`ok ${name}`);
  return true;
}

// Runs a scenario; what it leaves open is no reason to stay.
function scenario(main) {
  main().then(() => process.exit(0), (error) => {
    console.log(`failed the scenario: ${firstLine(error)}`);
    process.exit(1);
  });
}

module.exports = {pg, url, step, scenario};
