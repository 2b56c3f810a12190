// Run a request by the AWS SDK for JavaScript.
const { readFileSync } = require("node:fs");
const { SageMaker, waitUntilTrainingJobCompletedOrStopped } = require("@aws-sdk/client-sagemaker");
const { CloudWatchLogs, paginateFilterLogEvents } = require("@aws-sdk/client-cloudwatch-logs");
const { CloudWatch } = require("@aws-sdk/client-cloudwatch");

const client = new SageMaker({});

async function train(request) {
  const name = { TrainingJobName: request.TrainingJobName };
  await client.createTrainingJob(request);
  // Throws if the job has failed.
  await waitUntilTrainingJobCompletedOrStopped({ client, maxWaitTime: 200, minDelay: 1, maxDelay: 1 }, name).catch(() => {});
  const found = await client.describeTrainingJob(name);
  const filter = { logGroupName: "/aws/sagemaker/TrainingJobs", logStreamNamePrefix: `${request.TrainingJobName}/` };
  const log = [];
  for await (const page of paginateFilterLogEvents({ client: new CloudWatchLogs({}) }, filter)) {
    log.push(...page.events.map((event) => event.message));
  }
  const metric = {
    Namespace: "/aws/sagemaker/TrainingJobs",
    MetricName: "loss",
    Dimensions: [{ Name: "TrainingJobName", Value: request.TrainingJobName }],
    StartTime: new Date(found.CreationTime - 1000),
    EndTime: new Date(Date.now() + 60000),
    Period: 86400,
    Statistics: ["SampleCount"],
  };
  const { Datapoints } = await new CloudWatch({}).getMetricStatistics(metric);
  const count = Datapoints.reduce((sum, each) => sum + each.SampleCount, 0);
  const failure = found.FailureReason ?? (count === 2 ? "" : `CloudWatch has ${count} values, where the script printed 2`);
  return { log: log.join("\n"), artifacts: found.ModelArtifacts?.S3ModelArtifacts, failure };
}

async function tune(request) {
  const name = { HyperParameterTuningJobName: request.HyperParameterTuningJobName };
  await client.createHyperParameterTuningJob(request);
  let found;
  do {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    found = await client.describeHyperParameterTuningJob(name);
  } while (found.HyperParameterTuningJobStatus === "InProgress");
  const { TrainingJobName, TunedHyperParameters } = found.BestTrainingJob;
  const job = await client.describeTrainingJob({ TrainingJobName });
  return { artifacts: job.ModelArtifacts.S3ModelArtifacts, best: TunedHyperParameters, failure: found.FailureReason };
}

const request = JSON.parse(readFileSync(process.argv[2]));
(request.TrainingJobName ? train : tune)(request).then((outcome) => console.log("OUTCOME", JSON.stringify(outcome)));
